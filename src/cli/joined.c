#include "cli/joined.h"

#include "base/clock.h"
#include "base/list.h"
#include "diagnose/limits.h"
#include "diagnose/timeline/align.h"
#include "diagnose/timeline/kernel_class.h"
#include "report/format.h"
#include "store/join.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a run file says of the job that it is a part of. */
struct part {
    int file;
    struct hec_reader *reader;
    int size; /* ranks of the job; 0: it is of none */
    int ranks[HEC_JOIN_MAX], rank_count;
    int64_t start_ns, end_ns; /* wall clock */
    /* ends of its communication kernels on one device */
    int64_t *ends;
    size_t end_count, end_capacity;
};

static int take_rank(void *context, const char *key, const char *value) {
    struct part *p = context;
    int rank, local, size;
    if (strncmp(key, HEC_RANK_FACT, strlen(HEC_RANK_FACT)) != 0 || sscanf(value, "%d %d %d", &rank, &local, &size) != 3)
        return 0;
    p->size = size > p->size ? size : p->size;
    for (int i = 0; i < p->rank_count; i++)
        if (p->ranks[i] == rank)
            return 0;
    if (p->rank_count < HEC_JOIN_MAX)
        p->ranks[p->rank_count++] = rank;
    return 0;
}

static int64_t number(struct hec_reader *reader, const char *key) {
    const char *text = hec_reader_meta(reader, key);
    return text ? strtoll(text, NULL, 10) : 0;
}

static void open_part(const char *file, struct part *p) {
    struct hec_why why;
    if (hec_reader_open(file, &p->reader, &why) < 0)
        return;
    hec_reader_metas(p->reader, take_rank, p);
    p->start_ns = number(p->reader, "start_wall_ns");
    p->end_ns = p->start_ns + number(p->reader, "duration_ns");
}

/* Other ranks of as many. */
static bool other_ranks(const struct part *a, const struct part *b) {
    if (a->size < 2 || a->size != b->size || !a->rank_count || !b->rank_count || a->start_ns <= 0 || b->start_ns <= 0)
        return false;
    for (int i = 0; i < a->rank_count; i++)
        for (int k = 0; k < b->rank_count; k++)
            if (a->ranks[i] == b->ranks[k])
                return false;
    return true;
}

/* Between the end of one and the begin of the other, by their hosts' clocks; <= 0: they overlap. */
static int64_t apart_ns(const struct part *a, const struct part *b) {
    return a->start_ns - b->end_ns > b->start_ns - a->end_ns ? a->start_ns - b->end_ns : b->start_ns - a->end_ns;
}

static bool one_job(const struct part *a, const struct part *b) {
    return other_ranks(a, b) && apart_ns(a, b) < 0;
}

/* Two that would be one job, had they been run at the same time: a clock may be wrong. */
static void find_apart(const struct part *parts, char *const *files, int count, struct hec_joined *out) {
    char apart[HEC_FORMAT_SIZE];
    for (int i = 0; i < count; i++)
        for (int k = i + 1; k < count && !out->apart[0]; k++)
            if (other_ranks(&parts[i], &parts[k]) && apart_ns(&parts[i], &parts[k]) >= 0)
                snprintf(out->apart, sizeof out->apart,
                         "%s and %s: other ranks of as many, %s apart by the clocks of their hosts, so not of one job",
                         files[i], files[k],
                         hec_format_seconds(apart, (double)apart_ns(&parts[i], &parts[k]) / HEC_NS_PER_S));
}

/* ---- when collectives end ---- */

struct kernels {
    struct part *part;
    bool *communicates; /* by name, then by kernel */
    uint32_t name_count, kernel_count;
    bool *kernel;
    uint32_t track; /* the first that communicates: of one rank, one communicator */
};

static int take_name(void *context, uint32_t id, const char *text) {
    struct kernels *k = context;
    bool *grown = realloc(k->communicates, (size_t)id + 1);
    if (!grown)
        return HEC_ERR_NOMEM;
    k->communicates = grown;
    for (; k->name_count <= id; k->name_count++)
        grown[k->name_count] = false;
    grown[id] = hec_kernel_class_of(text) == HEC_KERNEL_CLASS_COMM;
    return 0;
}

static int take_kernel(void *context, const struct hec_kernel *kernel) {
    struct kernels *k = context;
    bool *grown = realloc(k->kernel, (size_t)kernel->id + 1);
    if (!grown)
        return HEC_ERR_NOMEM;
    k->kernel = grown;
    for (; k->kernel_count <= kernel->id; k->kernel_count++)
        grown[k->kernel_count] = false;
    grown[kernel->id] = kernel->name < k->name_count && k->communicates[kernel->name];
    return 0;
}

static int take_activities(void *context, const struct hec_activity *activities, size_t count) {
    struct kernels *k = context;
    struct part *p = k->part;
    for (size_t i = 0; i < count; i++) {
        const struct hec_activity *a = &activities[i];
        if (a->name >= k->kernel_count || !k->kernel[a->name] || (k->track && k->track != a->track))
            continue;
        k->track = a->track;
        if (!hec_list_room(p->ends, p->end_count, p->end_capacity, 1024))
            return HEC_ERR_NOMEM;
        p->ends[p->end_count++] = a->end_ns;
    }
    return 0;
}

static int find_ends(struct part *p, struct hec_why *why) {
    struct kernels k = {.part = p};
    int err = hec_reader_trace_names(p->reader, take_name, &k, why);
    if (err >= 0)
        err = hec_reader_kernels(p->reader, take_kernel, &k, why);
    if (err >= 0)
        err = hec_reader_activities(p->reader, HEC_ACTIVITY_BIT(HEC_ACTIVITY_KERNEL), take_activities, &k, why);
    free(k.communicates);
    free(k.kernel);
    if (p->end_count)
        qsort(p->ends, p->end_count, sizeof *p->ends, hec_by_int64);
    return err == HEC_ERR_NOTFOUND ? 0 : err;
}

/* ---- joining ---- */

/* Shifts by wall clock, then by collectives, where enough of them fall together. Returns their number, over all; 0: by wall clock. */
static int64_t align(struct part *parts, struct hec_join_run *runs, int count) {
    int64_t matched = 0, least_ns = 0;
    for (int i = 1; i < count; i++) {
        struct hec_alignment a;
        bool fits = hec_align(parts[0].ends, parts[0].end_count, parts[i].ends, parts[i].end_count,
                              parts[i].start_ns - parts[0].start_ns, &a);
        runs[i].shift_ns = a.shift_ns;
        matched = fits && (i == 1 || matched > 0) ? matched + a.matched : 0;
        least_ns = a.shift_ns < least_ns ? a.shift_ns : least_ns;
    }
    for (int i = 0; i < count; i++)
        runs[i].shift_ns -= least_ns;
    return matched;
}

static int write_joined(struct part *parts, int count, struct hec_joined *out, struct hec_why *why) {
    struct hec_join_run runs[HEC_JOIN_MAX] = {{0}};
    const char *folder = getenv("TMPDIR");
    char how[96], of[16];
    int err = 0;
    for (int i = 0; i < count && err >= 0; i++) {
        runs[i].reader = parts[i].reader;
        err = find_ends(&parts[i], why);
    }
    if (err < 0 || (err = hec_scratch_make(&out->folder, folder && folder[0] ? folder : "/tmp", why)) < 0)
        return err;
    int64_t matched = align(parts, runs, count);
    snprintf(of, sizeof of, "%d", count);
    bool unlike = !matched;
    for (int i = 0; i < count; i++)
        unlike = unlike && parts[i].end_count >= HEC_COLLECTIVES_LEAST;
    snprintf(how, sizeof how,
             matched  ? "%lld collectives"
             : unlike ? "wall clock: collectives do not fall together"
                      : "wall clock",
             (long long)matched);
    const char *const facts[] = {"joined", of, "joined_by", how, NULL};
    if (snprintf(out->path, sizeof out->path, "%s/job.hec", out->folder.path) >= (int)sizeof out->path)
        return hec_fail(why, HEC_ERR_USAGE, "%s: the path is too long", out->folder.path);
    return hec_store_join(runs, count, facts, out->path, why);
}

int hec_joined_make(char *const *files, int count, struct hec_joined *out, struct hec_why *why) {
    struct part *parts = calloc((size_t)count, sizeof *parts), *of_job = calloc((size_t)count, sizeof *of_job);
    int joined = 0, err = 0;
    *out = (struct hec_joined){.is_part = calloc((size_t)count, sizeof(bool)), .folder = {.owner = -1}};
    if (!parts || !of_job || !out->is_part)
        err = HEC_ERR_NOMEM;
    for (int i = 0; i < count && !err; i++) {
        parts[i].file = i;
        open_part(files[i], &parts[i]);
    }
    if (!err)
        find_apart(parts, files, count, out);
    for (int i = 0; i < count && !err && count > 1; i++) { /* of the job that the first file with another is of */
        bool fits = joined < HEC_JOIN_MAX;
        for (int k = 0; k < joined; k++)
            fits = fits && one_job(&of_job[k], &parts[i]);
        bool begins = false;
        for (int k = i + 1; k < count && !joined; k++)
            begins = begins || one_job(&parts[i], &parts[k]);
        if (!fits || !(joined || begins))
            continue;
        of_job[joined++] = parts[i];
        size_t length = strlen(out->files);
        snprintf(out->files + length, sizeof out->files - length, "%s%s", length ? " " : "", files[i]);
        out->is_part[i] = true;
    }
    if (!err && joined > 1)
        err = write_joined(of_job, joined, out, why);
    for (int i = 0; parts && i < count; i++)
        hec_reader_close(parts[i].reader);
    for (int i = 0; of_job && i < joined; i++)
        free(of_job[i].ends);
    free(parts);
    free(of_job);
    if (err < 0)
        hec_joined_free(out);
    return err;
}

void hec_joined_free(struct hec_joined *joined) {
    free(joined->is_part);
    hec_scratch_remove(&joined->folder);
    *joined = (struct hec_joined){.folder = {.owner = -1}};
}
