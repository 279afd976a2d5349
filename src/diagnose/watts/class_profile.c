#include "diagnose/watts/class_profile.h"

#include "base/clock.h"
#include "base/list.h"
#include "diagnose/meter/meter.h"
#include "diagnose/watts/joint.h"
#include "diagnose/states/ledger.h"
#include "diagnose/watts/pricing.h"
#include "diagnose/input.h"
#include "diagnose/meter/readings.h"
#include "diagnose/watts/unmix_state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CLASSES_MOST 8
#define CLASS_LEAST 0.02                      /* of the compute time: less is lost in the noise */
#define GPM_LONGEST_NS (1500 * HEC_NS_PER_MS) /* a reading so long after the one before follows a gap */
#define MINUTE_NS (60 * HEC_NS_PER_S)
#define GOOD_SHARE 0.9  /* of the compute time, in classes with good watts */
#define AGREES 0.25     /* of the ledger's watts of compute */
#define TRACED_MOST 0.9 /* of the run: then its compute time is known, else the engine's activity stands for it */
#define MEANS_SD 0.15  /* of a counter's mean over the run by the compute time: readings do not begin and end with it */
#define DOMINANT 0.9   /* of the compute time: its counters are those of all compute, give or take the rest */
#define COPY_USES 0.02 /* host copies: 50 GB/s of 3 to 5 TB/s */
#define PIPE_UNUSED 0.02 /* below, FP64 and integer parts of the tensor pipe are noise */

/* What is separated: idling first, then what else is no compute, then classes and the rest of them. */
enum {
    EDGE = HEC_JOINT_EDGE,
    IDLE = HEC_JOINT_IDLE,
    COPY = HEC_JOINT_COPY,
    COMM = HEC_JOINT_COMM,
    FIRST_CLASS = HEC_JOINT_FIRST,
    GROUPS_MOST = FIRST_CLASS + CLASSES_MOST + 1
};
_Static_assert((int)GROUPS_MOST <= HEC_UNMIX_CLASSES, "groups are classes of unmix.h");

enum counter { SM_ACTIVE, OCCUPANCY, DRAM, TENSOR, TENSOR_HALF, TENSOR_FP64, TENSOR_INT8, FP64, FP32, FP16, COUNTERS };
_Static_assert((int)COUNTERS <= HEC_UNMIX_COUNTERS, "counters of unmix.h");

static const enum hec_metric metrics[COUNTERS] = {
    [SM_ACTIVE] = HEC_GPM_SM_ACTIVE,     [OCCUPANCY] = HEC_GPM_SM_OCCUPANCY,  [DRAM] = HEC_GPM_DRAM_ACTIVE,
    [TENSOR] = HEC_GPM_TENSOR_ACTIVE,    [TENSOR_HALF] = HEC_GPM_HMMA_ACTIVE, [TENSOR_FP64] = HEC_GPM_DMMA_ACTIVE,
    [TENSOR_INT8] = HEC_GPM_IMMA_ACTIVE, [FP64] = HEC_GPM_FP64_ACTIVE,        [FP32] = HEC_GPM_FP32_ACTIVE,
    [FP16] = HEC_GPM_FP16_ACTIVE,
};

struct hec_class_profiler {
    const struct hec_device_summary *device;
    struct hec_unmix *fine, *whole; /* class by class; all compute as one: group FIRST_CLASS */
    int groups;                     /* of fine */
    int group[HEC_KERNEL_CLASS_COUNT];
    int class_of[GROUPS_MOST];     /* the lowest one; -1: no compute */
    int last;                      /* group of the last kernels; 0: none yet */
    int64_t tight_ns[GROUPS_MOST]; /* gaps that count as the kernels before them */
    bool precision_known[HEC_KERNEL_CLASS_COUNT + 1];
    enum hec_precision precision[HEC_KERNEL_CLASS_COUNT + 1]; /* of the tensor pipe; last: of all compute */
    bool seen[COUNTERS];
    bool fed; /* there are readings: else pieces say nothing */
    /* while the counters are read: their windows, which all of them share */
    struct gpm_window {
        int64_t start_ns, end_ns;
        int16_t permille[COUNTERS]; /* -1: no value */
    } * windows;
    size_t window_count, window_capacity, at;
    int counter, windows_of, err;
    int64_t every, previous_ns;
    bool previous;
};

/* ---- which classes ---- */

/* What the tensor pipe computes in, where the name says so. */
static bool tensor_precision(enum hec_kernel_precision kernel, enum hec_precision *out) {
    switch (kernel) {
    case HEC_KERNEL_PRECISION_TENSOR_FP8:
        *out = HEC_PRECISION_FP8;
        return true;
    case HEC_KERNEL_PRECISION_TENSOR_HALF:
        *out = HEC_PRECISION_FP16;
        return true;
    case HEC_KERNEL_PRECISION_TENSOR_TF32:
        *out = HEC_PRECISION_TF32;
        return true;
    case HEC_KERNEL_PRECISION_TENSOR_INT8:
        *out = HEC_PRECISION_INT8;
        return true;
    default:
        *out = HEC_PRECISION_FP16;
        return false;
    }
}

static void find_precision(struct hec_class_profiler *p, double seconds[][HEC_KERNEL_PRECISION_COUNT]) {
    for (int c = 0; c <= HEC_KERNEL_CLASS_COUNT; c++) {
        double most = 0;
        p->precision[c] = HEC_PRECISION_FP16;
        for (int k = 0; k < HEC_KERNEL_PRECISION_COUNT; k++) {
            enum hec_precision precision;
            if (tensor_precision((enum hec_kernel_precision)k, &precision) && seconds[c][k] > most) {
                most = seconds[c][k];
                p->precision[c] = precision;
                p->precision_known[c] = true;
            }
        }
    }
}

static void find_groups(struct hec_class_profiler *p, const double *seconds, double all) {
    bool alone[HEC_KERNEL_CLASS_COUNT] = {false};
    for (int n = 0; n < CLASSES_MOST; n++) {
        int best = -1;
        for (int c = 0; c < HEC_KERNEL_CLASS_COUNT; c++)
            if (!alone[c] && seconds[c] >= CLASS_LEAST * all && (best < 0 || seconds[c] > seconds[best]))
                best = c;
        if (best >= 0)
            alone[best] = true;
    }
    p->groups = FIRST_CLASS;
    for (int g = 0; g < GROUPS_MOST; g++)
        p->class_of[g] = -1;
    for (int c = 0; c < HEC_KERNEL_CLASS_COUNT; c++)
        if (alone[c]) {
            p->class_of[p->groups] = c;
            p->group[c] = p->groups++;
        }
    for (int c = 0; c < HEC_KERNEL_CLASS_COUNT; c++)
        if (!alone[c]) {
            p->group[c] = p->groups;
            if (p->class_of[p->groups] < 0)
                p->class_of[p->groups] = c;
        }
    p->groups++;
}

int hec_class_profiler_begin(const struct hec_device_timeline *timeline, const struct hec_device_summary *device,
                             const struct hec_unmix_sensor *sensor, struct hec_class_profiler **out) {
    double seconds[HEC_KERNEL_CLASS_COUNT] = {0}, all = 0;
    double by_precision[HEC_KERNEL_CLASS_COUNT + 1][HEC_KERNEL_PRECISION_COUNT] = {{0}};
    *out = NULL;
    for (int i = 0; timeline && i < timeline->row_count; i++) {
        const struct hec_kernel_row *k = &timeline->rows[i];
        enum hec_kernel_class class = k->kernel_class;
        if (class == HEC_KERNEL_CLASS_COMM || !(k->seconds > 0))
            continue;
        enum hec_kernel_precision precision = k->precision;
        seconds[class] += k->seconds;
        all += k->seconds;
        by_precision[class][precision] += k->seconds;
        by_precision[HEC_KERNEL_CLASS_COUNT][precision] += k->seconds;
    }
    if (timeline && timeline->graphs) {
        double graphs = fmax(0, timeline->compute_s - all);
        seconds[HEC_KERNEL_CLASS_GRAPH] += graphs;
        all += graphs;
    }
    if (!(all > 0))
        return 0;
    struct hec_class_profiler *p = calloc(1, sizeof *p);
    if (!p)
        return HEC_ERR_NOMEM;
    p->device = device;
    find_precision(p, by_precision);
    find_groups(p, seconds, all);
    struct hec_unmix_options fine = {.classes = p->groups,
                                     .counters = COUNTERS,
                                     .limit_w = device->power_limit_w,
                                     .readings_first = true,
                                     .sensor = *sensor};
    hec_joint_quiet(p->groups, p->class_of, &fine);
    const struct hec_unmix_options whole = {
        .classes = FIRST_CLASS + 1, .counters = COUNTERS, .limit_w = NAN, .readings_first = true};
    int err = hec_unmix_begin(&fine, &p->fine);
    if (!err)
        err = hec_unmix_begin(&whole, &p->whole);
    if (err) {
        hec_class_profiler_free(p);
        return err;
    }
    *out = p;
    return 0;
}

void hec_class_profiler_free(struct hec_class_profiler *p) {
    if (!p)
        return;
    hec_unmix_free(p->fine);
    hec_unmix_free(p->whole);
    free(p->windows);
    free(p);
}

/* ---- readings ---- */

/* The window that ends at t; NULL: there is none, or no memory. The first counter with readings says what there is. */
static struct gpm_window *window_at(struct hec_class_profiler *p, int64_t start_ns, int64_t end_ns) {
    while (p->at < p->window_count && p->windows[p->at].end_ns < end_ns)
        p->at++;
    if (p->at < p->window_count)
        return p->windows[p->at].end_ns == end_ns ? &p->windows[p->at] : NULL;
    if (p->window_count && p->windows_of != p->counter)
        return NULL;
    p->windows_of = p->counter;
    if (!hec_list_room(p->windows, p->window_count, p->window_capacity, 256)) {
        p->err = HEC_ERR_NOMEM;
        return NULL;
    }
    struct gpm_window *w = &p->windows[p->window_count++];
    *w = (struct gpm_window){.start_ns = start_ns, .end_ns = end_ns};
    for (int i = 0; i < COUNTERS; i++)
        w->permille[i] = -1;
    return w;
}

static void take_reading(void *context, int64_t t_ns, int64_t value, bool valid) {
    struct hec_class_profiler *p = context;
    int64_t start = p->previous_ns;
    bool follows = p->previous && t_ns > start && t_ns - start <= GPM_LONGEST_NS;
    p->previous = true;
    p->previous_ns = t_ns;
    if (!follows || p->err || (p->every > 1 && t_ns / MINUTE_NS % p->every != 0))
        return;
    struct gpm_window *w = window_at(p, start, t_ns);
    if (w && valid) {
        w->permille[p->counter] = (int16_t)(value < 0 ? 0 : value > 1000 ? 1000 : value);
        p->seen[p->counter] = true;
    }
}

static int give_windows(struct hec_class_profiler *p) {
    int err = 0;
    for (size_t i = 0; i < p->window_count && !err; i++) {
        const struct gpm_window *w = &p->windows[i];
        for (int c = 0; c < COUNTERS && !err; c++) {
            if (w->permille[c] < 0)
                continue;
            double share = w->permille[c] / 1e3;
            p->fed = true;
            err = hec_unmix_counter(p->fine, c, w->start_ns, w->end_ns, share);
            if (!err)
                err = hec_unmix_counter(p->whole, c, w->start_ns, w->end_ns, share);
        }
    }
    return err;
}

int hec_class_profiler_read(struct hec_class_profiler *p, struct hec_meter *meter, int64_t every, struct hec_why *why) {
    int err = 0;
    p->every = every;
    for (p->counter = 0; p->counter < COUNTERS && !err && !p->err; p->counter++) {
        p->previous = false;
        p->at = 0;
        err = hec_meter_read(meter, metrics[p->counter], p->device->device.index, take_reading, p, why);
    }
    err = err ? err : p->err;
    if (!err)
        err = give_windows(p);
    free(p->windows);
    p->windows = NULL;
    return err;
}

int hec_class_profiler_power(struct hec_class_profiler *p, int64_t t_ns, int64_t span_ns, double watts) {
    p->fed = true;
    return hec_unmix_power(p->fine, t_ns, span_ns, watts);
}

int hec_class_profiler_window(struct hec_class_profiler *p, int64_t start_ns, int64_t end_ns, double joules,
                              double sigma_j) {
    p->fed = true;
    return hec_unmix_window(p->fine, start_ns, end_ns, joules, sigma_j);
}

int hec_class_profiler_piece(struct hec_class_profiler *p, const struct hec_state_piece *piece) {
    int fine = IDLE, whole;
    if (!piece->traced || !p->fed)
        return 0;
    if (piece->state == HEC_STATE_COMPUTE)
        fine = p->group[piece->kernel_class < HEC_KERNEL_CLASS_COUNT ? piece->kernel_class : HEC_KERNEL_CLASS_OTHER];
    else if (piece->state == HEC_STATE_COMM || piece->state == HEC_STATE_COPY)
        fine = piece->state == HEC_STATE_COMM ? COMM : COPY;
    else if (piece->state == HEC_STATE_STARTUP || piece->state == HEC_STATE_TAIL)
        fine = EDGE;
    if (fine >= FIRST_CLASS)
        p->last = fine;
    if (fine == IDLE && p->last && hec_pricing_tight(piece)) {
        fine = p->last;
        p->tight_ns[fine] += piece->end_ns - piece->start_ns;
    }
    whole = fine < FIRST_CLASS ? fine : FIRST_CLASS;
    int err = hec_unmix_piece(p->fine, fine, piece->start_ns, piece->end_ns);
    return err ? err : hec_unmix_piece(p->whole, whole, piece->start_ns, piece->end_ns);
}

/* ---- counters ---- */

static const struct hec_roofline_share unknown_share = {NAN, NAN, NAN};

/* Of one group. What it has in common with idling and copying is its own alone: those use none of the SMs, and copies
 * little of device memory. */
static struct hec_roofline_share share_of(const struct hec_unmix_result *r, int group) {
    const struct hec_unmix_class *c = &r->class[group];
    double busy = 0, idle = 0, copies = 0;
    if (c->flaw == HEC_UNMIX_SHORT || c->flaw == HEC_UNMIX_UNSEEN || c->flaw == HEC_UNMIX_LITTLE || !isfinite(c->value))
        return unknown_share;
    for (int i = 0; i < r->classes && c->merged_with >= 0; i++)
        if (r->class[i].merged_with == c->merged_with)
            *(i == COPY ? &copies : i < COPY ? &idle : &busy) += r->class[i].seconds;
    double more = busy > 0 ? (busy + idle + copies) / busy : 1, theirs = busy > 0 ? COPY_USES * copies / busy : 0;
    return (struct hec_roofline_share){fmin(1, c->value * more), fmin(1, fmax(0, c->low * more - theirs)),
                                       fmin(1, c->high * more)};
}

/* The other class that a group's counters are in common with; -1: none. */
static int common_class(const struct hec_class_profiler *p, const struct hec_unmix_result *r, int group) {
    int with = r->class[group].merged_with;
    for (int i = FIRST_CLASS; i < r->classes && with >= 0; i++)
        if (i != group && r->class[i].merged_with == with && r->class[i].seconds > 0)
            return p->class_of[i];
    return -1;
}

static void place(struct hec_class_row *row, const struct hec_roofline_share *shares, const bool *seen, bool known,
                  enum hec_precision precision, const struct hec_roofline_peaks *peaks) {
    struct hec_roofline_input *in = &row->counters;
    bool apart =
        seen[TENSOR_HALF] && (shares[TENSOR_FP64].value >= PIPE_UNUSED || shares[TENSOR_INT8].value >= PIPE_UNUSED);
    in->sm_active = shares[SM_ACTIVE];
    in->occupancy = shares[OCCUPANCY];
    in->dram = shares[DRAM];
    in->pipe[HEC_PIPE_TENSOR] = shares[apart || !seen[TENSOR] ? TENSOR_HALF : TENSOR];
    in->pipe[HEC_PIPE_TENSOR_FP64] = apart ? shares[TENSOR_FP64] : unknown_share;
    in->pipe[HEC_PIPE_TENSOR_INT8] = apart ? shares[TENSOR_INT8] : unknown_share;
    in->pipe[HEC_PIPE_FP64] = shares[FP64];
    in->pipe[HEC_PIPE_FP32] = shares[FP32];
    in->pipe[HEC_PIPE_FP16] = shares[FP16];
    in->tensor_known = known;
    in->tensor_precision = precision;
    hec_roofline_place(in, peaks, &row->point);
}

/* Of all compute, where windows are too few or too alike: all that was counted in the run, by the time that computed. */
static struct hec_roofline_share share_of_means(const struct hec_class_profiler *p, int counter,
                                                const struct hec_ledger_device *ledger) {
    double mean = p->device->metric[metrics[counter]].mean, compute = p->device->metric[HEC_GPM_GR_ACTIVE].mean;
    if ((double)ledger->traced_ns >= TRACED_MOST * (double)ledger->window_ns)
        compute = (double)ledger->rows[HEC_STATE_COMPUTE].ns / (double)ledger->window_ns;
    if (!(compute > 0) || !isfinite(mean))
        return unknown_share;
    double value = mean / compute;
    return (struct hec_roofline_share){fmin(1, value), fmin(1, (1 - MEANS_SD) * value),
                                       fmin(1, (1 + MEANS_SD) * value)};
}

static double width(const struct hec_roofline_share *share) {
    return isfinite(share->value) ? share->high - share->low : INFINITY;
}

/* Of the class that nearly all compute is. */
static struct hec_roofline_share share_of_most(const struct hec_roofline_share *all, double share) {
    return (struct hec_roofline_share){all->value, fmax(0, all->low - (1 - share)), fmin(1, all->high + (1 - share))};
}

static int solve_counters(struct hec_class_profiler *p, const struct hec_ledger_device *ledger,
                          struct hec_class_profile *out) {
    struct hec_roofline_share fine[GROUPS_MOST][COUNTERS], whole[COUNTERS];
    struct hec_unmix_result result;
    for (int i = 0; i < COUNTERS; i++) {
        whole[i] = unknown_share;
        for (int g = 0; g < GROUPS_MOST; g++)
            fine[g][i] = unknown_share;
        if (!p->seen[i])
            continue;
        int err = hec_unmix_solve_counter(p->whole, i, &result);
        if (err == HEC_ERR_NOMEM)
            return err;
        if (!err)
            whole[i] = share_of(&result, FIRST_CLASS);
        err = hec_unmix_solve_counter(p->fine, i, &result);
        if (err == HEC_ERR_NOMEM)
            return err;
        for (int g = FIRST_CLASS; g < p->groups && !err; g++)
            fine[g][i] = share_of(&result, g);
        for (int c = 0; c < HEC_KERNEL_CLASS_COUNT && !err && i == SM_ACTIVE; c++)
            out->class[c].merged_with = out->class[c].seconds > 0 ? common_class(p, &result, p->group[c]) : -1;
        struct hec_roofline_share means = share_of_means(p, i, ledger);
        whole[i] = width(&means) < width(&whole[i]) ? means : whole[i];
        for (int c = 0; c < HEC_KERNEL_CLASS_COUNT; c++) {
            struct hec_roofline_share most = share_of_most(&whole[i], out->class[c].share);
            if (out->class[c].share >= DOMINANT && width(&most) < width(&fine[p->group[c]][i]))
                fine[p->group[c]][i] = most;
        }
    }
    out->has_counters = p->seen[SM_ACTIVE] || p->seen[DRAM] || p->seen[TENSOR];
    for (int c = 0; c < HEC_KERNEL_CLASS_COUNT; c++)
        if (out->class[c].seconds > 0)
            place(&out->class[c], fine[p->group[c]], p -> seen, p -> precision_known[c], p -> precision[c],
                  &out -> peaks);
    place(&out->all, whole, p->seen, p->precision_known[HEC_KERNEL_CLASS_COUNT], p->precision[HEC_KERNEL_CLASS_COUNT],
          &out->peaks);
    return 0;
}

/* ---- watts ---- */

/* Watts of the classes as parts of what the ledger says of compute. False: not separated. */
static bool class_watts(const struct hec_class_profiler *p, const struct hec_ledger_device *ledger,
                        const struct hec_unmix_result *r, struct hec_ledger_watts *out) {
    const struct hec_ledger_row *compute = &ledger->rows[HEC_STATE_COMPUTE];
    double all = 0, good = 0, joules = 0;
    for (int c = 0; c < HEC_KERNEL_CLASS_COUNT; c++) {
        const struct hec_unmix_class *u = &r->class[p->group[c]];
        double seconds = (double)ledger->classes[c].ns / HEC_NS_PER_S;
        bool known = u->flaw == HEC_UNMIX_GOOD && u->merged_with < 0 && u->value > 0;
        out[c] =
            known ? (struct hec_ledger_watts){u->value, u->low, u->high} : (struct hec_ledger_watts){NAN, NAN, NAN};
        all += seconds;
        good += known ? seconds : 0;
        joules += known ? seconds * u->value : 0;
    }
    if (!(good > 0) || good < GOOD_SHARE * all || !(compute->watts > 0) ||
        fabs(joules / good - compute->watts) > AGREES * compute->watts)
        return false;
    double scale = compute->watts * good / joules;
    for (int c = 0; c < HEC_KERNEL_CLASS_COUNT; c++)
        out[c] = isfinite(out[c].watts)
                     ? (struct hec_ledger_watts){scale * out[c].watts, scale * out[c].low, scale * out[c].high}
                     : (struct hec_ledger_watts){compute->watts, NAN, NAN};
    return true;
}

static int price_classes(struct hec_class_profiler *p, struct hec_ledger_device *ledger) {
    struct hec_ledger_watts watts[HEC_KERNEL_CLASS_COUNT];
    double weights[HEC_KERNEL_CLASS_COUNT];
    int64_t shares[HEC_KERNEL_CLASS_COUNT];
    struct hec_unmix_result result;
    int err = isfinite(ledger->joules) ? hec_unmix_solve(p->fine, &result) : HEC_ERR_NOTFOUND;
    if (err == HEC_ERR_NOMEM)
        return err;
    const struct hec_joint joint = {p->fine,           p->groups, p->group, p->tight_ns, p->device->power_limit_w,
                                    &p->device->energy};
    bool known = !err && result.valid && class_watts(p, ledger, &result, watts), done = false;
    if (!err)
        err = hec_joint_price(ledger, &joint, &done);
    if (err == HEC_ERR_NOMEM)
        return err;
    if (done || !known)
        return 0;
    for (int c = 0; c < HEC_KERNEL_CLASS_COUNT; c++)
        weights[c] = (double)ledger->classes[c].ns * watts[c].watts;
    hec_ledger_apportion(weights, HEC_KERNEL_CLASS_COUNT, ledger->rows[HEC_STATE_COMPUTE].mj, shares);
    for (int c = 0; c < HEC_KERNEL_CLASS_COUNT; c++) {
        struct hec_ledger_class *class = &ledger->classes[c];
        if (!class->ns)
            continue;
        class->mj = shares[c];
        class->joules = (double)shares[c] / 1e3;
        class->watts = watts[c].watts;
        class->watts_low = watts[c].low;
        class->watts_high = watts[c].high;
    }
    return 0;
}

/* ---- the whole ---- */

static const enum hec_peak_kind peak_kinds[HEC_PRECISION_COUNT] = {
    [HEC_PRECISION_FP64] = HEC_PEAK_FP64, [HEC_PRECISION_FP64_TENSOR] = HEC_PEAK_FP64_TENSOR,
    [HEC_PRECISION_FP32] = HEC_PEAK_FP32, [HEC_PRECISION_TF32] = HEC_PEAK_TF32,
    [HEC_PRECISION_FP16] = HEC_PEAK_FP16, [HEC_PRECISION_FP8] = HEC_PEAK_FP8,
    [HEC_PRECISION_INT8] = HEC_PEAK_INT8, [HEC_PRECISION_FP4] = HEC_PEAK_COUNT,
};

static void fill_peaks(const struct hec_device_summary *device, const struct hec_peaks *measured,
                       struct hec_class_profile *out) {
    const struct hec_part *part = hec_part_find(device->device.name);
    enum hec_peak_source source;
    hec_roofline_peaks_of(part, &out->peaks);
    out->sms = measured && measured->sms > 0 ? measured->sms : part ? part->sms : NAN;
    for (int i = 0; measured && i < HEC_PRECISION_COUNT; i++)
        if (peak_kinds[i] != HEC_PEAK_COUNT) {
            out->peaks.flops[i] = hec_peak_roof(measured, part, peak_kinds[i], &source);
            out->peaks.calibrated = out->peaks.calibrated || source == HEC_PEAK_CALIBRATED;
        }
    if (measured) {
        double read = hec_peak_roof(measured, part, HEC_PEAK_DRAM_READ, &source);
        out->peaks.calibrated = out->peaks.calibrated || source == HEC_PEAK_CALIBRATED;
        out->peaks.bytes_per_s = fmax(read, hec_peak_roof(measured, part, HEC_PEAK_DRAM_COPY, &source));
        out->peaks.calibrated = out->peaks.calibrated || source == HEC_PEAK_CALIBRATED;
    }
}

static void unknown_row(struct hec_class_row *row, const struct hec_roofline_peaks *peaks) {
    static const bool none[COUNTERS] = {false};
    struct hec_roofline_share shares[COUNTERS];
    for (int i = 0; i < COUNTERS; i++)
        shares[i] = unknown_share;
    *row = (struct hec_class_row){.joules = NAN, .watts = NAN, .watts_low = NAN, .watts_high = NAN, .merged_with = -1};
    place(row, shares, none, false, HEC_PRECISION_FP16, peaks);
}

void hec_class_profile_none(const struct hec_device_summary *device, const struct hec_ledger_device *ledger,
                            const struct hec_peaks *peaks, struct hec_class_profile *out) {
    const struct hec_ledger_row *compute = &ledger->rows[HEC_STATE_COMPUTE];
    memset(out, 0, sizeof *out);
    out->device = ledger->device;
    fill_peaks(device, peaks, out);
    out->counters = device->others != HEC_OTHERS_IDLE                                         ? HEC_COUNTERS_SHARED
                    : device->device.has_gpm == 0 && device->energy.method != HEC_ENERGY_NONE ? HEC_COUNTERS_NONE
                                                                                              : HEC_COUNTERS_UNREAD;
    unknown_row(&out->all, &out->peaks);
    out->all.seconds = compute->seconds;
    out->all.share = compute->ns > 0 ? 1 : 0;
    out->all.joules = compute->joules;
    out->all.watts = compute->watts;
    out->all.watts_low = compute->watts_low;
    out->all.watts_high = compute->watts_high;
    for (int c = 0; c < HEC_KERNEL_CLASS_COUNT; c++) {
        const struct hec_ledger_class *class = &ledger->classes[c];
        struct hec_class_row *row = &out->class[c];
        unknown_row(row, &out->peaks);
        row->seconds = (double)class->ns / HEC_NS_PER_S;
        row->share = compute->ns > 0 ? (double)class->ns / (double)compute->ns : 0;
        row->joules = class->joules;
        row->watts = class->watts;
        row->watts_low = class->watts_low;
        row->watts_high = class->watts_high;
    }
}

int hec_class_profiler_end(struct hec_class_profiler *p, struct hec_ledger_device *ledger,
                           const struct hec_peaks *peaks, struct hec_class_profile *out) {
    int err = price_classes(p, ledger);
    hec_class_profile_none(p->device, ledger, peaks, out);
    if (err)
        return err;
    err = solve_counters(p, ledger, out);
    if (out->has_counters)
        out->counters = HEC_COUNTERS_READ;
    return err;
}
