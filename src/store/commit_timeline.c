/* The timeline's part of a transaction. */
#include "store/commit.h"

int hec_commit_definitions(struct hec_commit *commit, const struct hec_definition_batch *batch) {
    int rc = SQLITE_OK;
    sqlite3_stmt *s = commit->statements[HEC_STATEMENT_TRACE_NAME];
    for (uint32_t i = 0; i < batch->name_count && rc == SQLITE_OK; i++) {
        sqlite3_bind_int64(s, 1, batch->name_first + i);
        sqlite3_bind_text(s, 2, batch->names[i], -1, SQLITE_STATIC);
        rc = hec_commit_step(s);
    }
    for (uint32_t i = 0; i < batch->track_count && rc == SQLITE_OK; i++)
        rc = hec_commit_record(commit->track, &hec_record_track, &batch->tracks[i], 0);
    for (uint32_t i = 0; i < batch->kernel_count && rc == SQLITE_OK; i++)
        rc = hec_commit_record(commit->kernel, &hec_record_kernel, &batch->kernels[i], 0);
    for (uint32_t i = 0; i < batch->frame_count && rc == SQLITE_OK; i++)
        rc = hec_commit_record(commit->frame, &hec_record_frame, &batch->frames[i], 0);
    return rc;
}

static int write_block(struct hec_commit *commit, enum hec_commit_statement which, bool open,
                       const struct hec_activity_block *block, int64_t origin_ns) {
    sqlite3_stmt *s = commit->statements[which];
    if (open)
        sqlite3_bind_int64(s, 1, -(int64_t)block->chain);
    if (which == HEC_STATEMENT_ACTIVITIES) {
        sqlite3_bind_int64(s, 2, block->track);
        sqlite3_bind_text(s, 3, hec_activity_kind_name(block->kind), -1, SQLITE_STATIC);
    }
    if (which != HEC_STATEMENT_ACTIVITIES_EXTEND)
        sqlite3_bind_int64(s, 4, block->t0_ns - origin_ns);
    sqlite3_bind_int64(s, 5, block->t1_ns - origin_ns);
    sqlite3_bind_int64(s, 6, block->n);
    sqlite3_bind_int64(s, 7, block->total_ns);
    sqlite3_bind_double(s, 8, block->amount);
    sqlite3_bind_blob64(s, 9, block->bytes, block->length, SQLITE_STATIC);
    return hec_commit_step(s);
}

static int write_open(struct hec_commit *commit, const struct hec_activity_block *block, int64_t origin_ns) {
    if (block->n == 0) {
        sqlite3_stmt *s = commit->statements[HEC_STATEMENT_ACTIVITIES_REMOVE];
        sqlite3_bind_int64(s, 1, -(int64_t)block->chain);
        return hec_commit_step(s);
    }
    enum hec_commit_statement which = !block->has_row  ? HEC_STATEMENT_ACTIVITIES
                                      : block->same_t0 ? HEC_STATEMENT_ACTIVITIES_EXTEND
                                                       : HEC_STATEMENT_ACTIVITIES_REPLACE;
    return write_block(commit, which, true, block, origin_ns);
}

int hec_commit_timeline(struct hec_commit *commit, const struct hec_store_timeline_batch *batch, int64_t origin_ns) {
    int rc = SQLITE_OK;
    for (const struct hec_activity_block *b = batch->open; b && rc == SQLITE_OK; b = b->next)
        rc = write_open(commit, b, origin_ns);
    for (const struct hec_activity_block *b = batch->closed; b && rc == SQLITE_OK; b = b->next)
        rc = write_block(commit, HEC_STATEMENT_ACTIVITIES, false, b, origin_ns);
    sqlite3_stmt *s = commit->statements[HEC_STATEMENT_TOTAL];
    for (size_t i = 0; i < batch->total_count && rc == SQLITE_OK; i++) {
        const struct hec_activity_total *total = &batch->totals[i];
        sqlite3_bind_text(s, 1, hec_activity_kind_name(total->kind), -1, SQLITE_STATIC);
        sqlite3_bind_int64(s, 2, total->name);
        sqlite3_bind_int64(s, 3, total->count);
        sqlite3_bind_int64(s, 4, total->total_ns);
        rc = hec_commit_step(s);
    }
    return rc;
}
