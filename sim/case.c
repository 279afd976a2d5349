#include "sim/case.h"

#include "sim/dvfs.h"
#include "sim/spec.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SEG(activity, us) {SIM_##activity, us, 1},
#define REP(activity, us, times) {SIM_##activity, us, times},
static const struct sim_case cases[] = {
#define SIM_CASE(name, cause, untraced, unit, units, memory, cap, meaning, ...)                                        \
    {name,                                                                                                             \
     cause,                                                                                                            \
     untraced,                                                                                                         \
     unit,                                                                                                             \
     units,                                                                                                            \
     memory,                                                                                                           \
     cap * 1000,                                                                                                       \
     meaning,                                                                                                          \
     (const struct sim_case_segment[]){__VA_ARGS__},                                                                   \
     sizeof((const struct sim_case_segment[]){__VA_ARGS__}) / sizeof(struct sim_case_segment)},
#include "sim/cases.def"
#undef SIM_CASE
};

int sim_case_count(void) {
    return (int)(sizeof cases / sizeof cases[0]);
}

const struct sim_case *sim_case_at(int index) {
    return &cases[index];
}

const struct sim_case *sim_case_find(const char *name) {
    for (int i = 0; i < sim_case_count(); i++)
        if (strcmp(cases[i].name, name) == 0)
            return &cases[i];
    return NULL;
}

static int activity_of(const char *name) {
    for (int a = 0; a < SIM_ACTIVITY_COUNT; a++)
        if (strcmp(sim_activity_info((enum sim_activity)a)->name, name) == 0)
            return a;
    return -1;
}

/* ACTIVITY:MICROSECONDS[xTIMES] */
static bool read_segment(char *word, struct sim_case_segment *segment) {
    char *colon = strchr(word, ':'), *by = colon ? strchr(colon, 'x') : NULL;
    double us = 0, times = 1;
    if (!colon)
        return false;
    *colon++ = '\0';
    if (by)
        *by++ = '\0';
    int activity = activity_of(word);
    if (activity < 0 || !sim_spec_number(colon, 1e9, &us) || us < 1 ||
        (by && (!sim_spec_number(by, 1e6, &times) || times < 1 || times != floor(times))))
        return false;
    *segment = (struct sim_case_segment){(enum sim_activity)activity, (int64_t)us, (int)times};
    return true;
}

int sim_case_read(const char *text, struct sim_case_written *written, struct hec_why *why) {
    char copy[2048], *rest = copy, *word;
    if (snprintf(copy, sizeof copy, "%s", text) >= (int)sizeof copy)
        return hec_fail(why, HEC_ERR_USAGE, "a case is written in at most %zu characters", sizeof copy - 1);
    written->workload = (struct sim_case){.name = "written",
                                          .cause = "none",
                                          .untraced = "",
                                          .unit = "step",
                                          .units = 1,
                                          .memory_mib = 9000,
                                          .meaning = "written on the command line",
                                          .segments = written->segments};
    while ((word = strsep(&rest, ","))) {
        if (written->workload.segment_count == SIM_CASE_WRITTEN_MAX)
            return hec_fail(why, HEC_ERR_USAGE, "a case has at most %d segments", SIM_CASE_WRITTEN_MAX);
        if (!read_segment(word, &written->segments[written->workload.segment_count++]))
            return hec_fail(why, HEC_ERR_USAGE,
                            "'%.40s': a segment is ACTIVITY:MICROSECONDS or ACTIVITY:MICROSECONDSxTIMES, as in "
                            "train_tf32:25700",
                            word);
    }
    return HEC_OK;
}

void sim_cursor_init(struct sim_cursor *cursor, const struct sim_case *workload, uint64_t seed) {
    *cursor = (struct sim_cursor){workload, seed, 0, -1, 0};
}

struct sim_span sim_cursor_next(struct sim_cursor *cursor) {
    if (cursor->segment < 0) {
        cursor->segment = 0;
        return (struct sim_span){SIM_WAIT_STARTUP, SIM_STARTUP_NS, false};
    }
    const struct sim_case_segment *segment = &cursor->workload->segments[cursor->segment];
    int64_t duration = segment->duration_us * 1000;
    if (cursor->seed) /* the first number of the hash is the stream */
        duration += (int64_t)((double)duration * 0.1 * (sim_hash_unit(cursor->seed, cursor->drawn++, 0) - 0.5));
    struct sim_span span = {segment->activity, duration, false};
    if (++cursor->repetition == segment->times) {
        cursor->repetition = 0;
        if (++cursor->segment == cursor->workload->segment_count) {
            cursor->segment = 0;
            span.step_end = true;
        }
    }
    return span;
}

void sim_truth_add(struct sim_truth *truth, enum sim_activity activity, const struct sim_piece *piece) {
    double seconds = (double)(piece->end_ns - piece->start_ns) * 1e-9;
    double joules = (double)sim_energy_of(piece->power_mw, piece->end_ns - piece->start_ns) * 1e-9;
    truth->seconds += seconds;
    truth->joules += joules;
    truth->activity[activity].seconds += seconds;
    truth->activity[activity].joules += joules;
    if (piece->held)
        truth->capped_seconds += seconds;
    if (sim_activity_info(activity)->work) {
        truth->work_seconds += seconds;
        truth->work_joules += joules;
    } else {
        truth->idle_seconds += seconds;
        truth->idle_joules += joules;
    }
}

int32_t sim_case_cap_mw(const struct sim_case *workload, const struct sim_profile *profile) {
    return workload->cap_mw == 0                      ? 0
           : workload->cap_mw < profile->power_min_mw ? profile->power_min_mw
           : workload->cap_mw > profile->power_max_mw ? profile->power_max_mw
                                                      : workload->cap_mw;
}

int sim_case_walk(const struct sim_case *workload, double seconds, const struct sim_profile *profile, int32_t cap_mw,
                  uint64_t seed, const struct sim_walk *walk) {
    if (!(seconds >= 0 && seconds <= 1e7))
        return HEC_ERR_USAGE;
    struct sim_cursor cursor;
    /* the controller has not been over the cap for long */
    struct sim_controller controller = {-2 * SIM_CONTROLLER_PAUSE_NS, 0};
    int64_t t = 0, end = (int64_t)(seconds * 1e9 + 0.5);
    struct sim_limits limits = {cap_mw ? cap_mw : profile->power_default_mw, sim_case_cap_mw(workload, profile), 0};
    if (limits.own_mw && limits.own_mw < limits.cap_mw)
        limits.cap_mw = limits.own_mw;
    sim_cursor_init(&cursor, workload, seed);
    while (t < end) {
        struct sim_span span = sim_cursor_next(&cursor);
        span.duration_ns = sim_lasts_ns(profile, &limits, &controller, span.activity, t, span.duration_ns);
        int64_t stop = t + span.duration_ns < end ? t + span.duration_ns : end;
        struct sim_piece pieces[2];
        int count = sim_power_split(profile, &limits, &controller, span.activity, t, stop, pieces);
        t += span.duration_ns;
        walk->visit(walk->context, &span, pieces, count, t <= end);
    }
    return HEC_OK;
}

struct truth_walk {
    const struct sim_case *workload;
    struct sim_truth *truth;
};

static void add_truth(void *context, const struct sim_span *span, const struct sim_piece *pieces, int count,
                      bool whole) {
    const struct truth_walk *to = context;
    for (int i = 0; i < count; i++)
        sim_truth_add(to->truth, span->activity, &pieces[i]);
    if (span->step_end && whole) {
        to->truth->steps++;
        to->truth->units += to->workload->units;
    }
}

int sim_case_truth(const struct sim_case *workload, double seconds, const struct sim_profile *profile, int32_t cap_mw,
                   uint64_t seed, struct sim_truth *truth) {
    struct truth_walk to = {workload, truth};
    const struct sim_walk walk = {&to, add_truth};
    memset(truth, 0, sizeof *truth);
    return sim_case_walk(workload, seconds, profile, cap_mw, seed, &walk);
}
