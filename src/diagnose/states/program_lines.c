#include "diagnose/states/program_lines.h"

#include "diagnose/timeline/pass.h"

#include <stdlib.h>

struct hec_program_lines_builder {
    const struct hec_timeline_tables *tables;
    struct hec_source_builder *source;
};

/* The main thread has the id of its process. NULL: it is none. */
static const struct hec_track *main_thread(const struct hec_timeline_tables *tables, uint32_t track_id) {
    const struct hec_track *track = track_id < tables->track_count ? hec_timeline_track(tables, track_id) : NULL;
    return track && track->kind == HEC_TRACK_THREAD && track->stream == track->pid ? track : NULL;
}

static int take(void *context, const struct hec_activity *a, size_t count) {
    struct hec_program_lines_builder *b = context;
    int err = 0;
    for (size_t i = 0; i < count && !err; i++) {
        const struct hec_track *thread = a[i].kind == HEC_ACTIVITY_STACK ? main_thread(b->tables, a[i].track) : NULL;
        if (!thread || !hec_timeline_plausible(&a[i]))
            continue;
        const struct hec_state_sample sample = {
            .t_ns = a[i].start_ns,
            .period_ns = a[i].end_ns - a[i].start_ns,
            .frame = a[i].name,
            .pid = thread->pid,
            .state = HEC_STATE_HOST,
        };
        err = hec_source_sample(b->source, HEC_DEVICE_NONE, &sample);
    }
    return err;
}

struct hec_program_lines_builder *hec_program_lines_begin(const struct hec_timeline_tables *tables,
                                                          struct hec_pass_consumer *consumer) {
    struct hec_program_lines_builder *b = calloc(1, sizeof *b);
    if (!b)
        return NULL;
    b->tables = tables;
    b->source = hec_source_begin(tables);
    if (!b->source) {
        free(b);
        return NULL;
    }
    *consumer = hec_stage_consumer(HEC_STAGE_LINES, b, take);
    return b;
}

int hec_program_lines_end(struct hec_program_lines_builder *b, int most, struct hec_source_lines *out) {
    struct hec_source_builder *source = b->source;
    free(b);
    return hec_source_end(source, NULL, most, out);
}

void hec_program_lines_abandon(struct hec_program_lines_builder *b) {
    if (!b)
        return;
    hec_source_abandon(b->source);
    free(b);
}
