#include "diagnose/meter/split.h"

#include "diagnose/limits.h"
#include "diagnose/physics.h"
#include "base/clock.h"

#include <math.h>
#include <stdlib.h>

#define BINS_MAX 65536
/* The driver's utilisation is one figure a second, over a part of it: what it calls quiet counts for the level only where the
 * power is near the least seen with a context. Idle power wanders by a few per cent; the next state is 1.5 times as high. */
#define COARSE_FLOOR 1.15
/* A loop that idles for a while in every step is never quiet for a whole window of the counters, but its lowest power samples
 * of 20 ms are idle ones, if it idles for a fifth of the time in stretches of some 30 ms. */
#define ESTIMATE_SHARE_MIN 0.2
/* The level must lie that far below the mean, else the idle gaps are shorter than a sample; and half of the idle time must
 * draw no more than SPREAD times the level, else it is a mixture. */
#define ESTIMATE_DEPTH 0.75
#define ESTIMATE_SPREAD 1.08
#define UNKNOWN_SHARE_MAX 0.1 /* of the run without a reading of the activity */

struct bin {
    float joules, power_s;   /* energy and time of the power samples */
    float active_s, known_s; /* activity x time, time with a reading of the activity */
    float with_s, without_s; /* time with and without a context */
};

struct hec_split {
    struct bin *bins;
    int count;
    int64_t end_ns, width_ns;
    int64_t context_ns;
    int contexts; /* -1: no reading, or the last one was missing */
    bool any_context_reading;
    bool coarse, copies;
};

int hec_split_create(int64_t end_ns, struct hec_split **out) {
    struct hec_split *split = calloc(1, sizeof *split);
    if (!split)
        return HEC_ERR_NOMEM;
    split->end_ns = end_ns;
    split->width_ns = end_ns / BINS_MAX + 1;
    if (split->width_ns < HEC_POWER_SAMPLE_NS)
        split->width_ns = HEC_POWER_SAMPLE_NS;
    split->count = end_ns > 0 ? (int)((end_ns - 1) / split->width_ns) + 1 : 0;
    split->contexts = -1;
    split->bins = calloc((size_t)split->count + 1, sizeof *split->bins);
    if (!split->bins) {
        free(split);
        return HEC_ERR_NOMEM;
    }
    *out = split;
    return 0;
}

void hec_split_free(struct hec_split *split) {
    if (!split)
        return;
    free(split->bins);
    free(split);
}

enum lay { LAY_POWER, LAY_ACTIVITY, LAY_WITH, LAY_WITHOUT };

static void lay(struct hec_split *split, enum lay what, int64_t start_ns, int64_t end_ns, double value) {
    start_ns = start_ns < 0 ? 0 : start_ns;
    end_ns = end_ns > split->end_ns ? split->end_ns : end_ns;
    while (start_ns < end_ns) {
        int64_t at = start_ns / split->width_ns;
        int64_t to = (at + 1) * split->width_ns;
        to = to < end_ns ? to : end_ns;
        float seconds = (float)((double)(to - start_ns) / HEC_NS_PER_S);
        struct bin *bin = &split->bins[at];
        if (what == LAY_POWER) {
            bin->joules += seconds * (float)value;
            bin->power_s += seconds;
        } else if (what == LAY_ACTIVITY) {
            bin->active_s += seconds * (float)value;
            bin->known_s += seconds;
        } else if (what == LAY_WITH) {
            bin->with_s += seconds;
        } else {
            bin->without_s += seconds;
        }
        start_ns = to;
    }
}

void hec_split_copies(struct hec_split *split) {
    split->copies = true;
}

void hec_split_coarse(struct hec_split *split) {
    split->coarse = true;
}

void hec_split_power(void *split, int64_t start_ns, int64_t end_ns, double watts) {
    lay(split, LAY_POWER, start_ns, end_ns, watts);
}

void hec_split_activity(void *split, int64_t start_ns, int64_t end_ns, double share) {
    lay(split, LAY_ACTIVITY, start_ns, end_ns, share);
}

void hec_split_contexts(void *to, int64_t t_ns, int64_t contexts, bool valid) {
    struct hec_split *split = to;
    int now = !valid ? -1 : contexts > 0;
    if (now >= 0 && now == split->contexts)
        lay(split, now ? LAY_WITH : LAY_WITHOUT, split->context_ns, t_ns, 0);
    split->contexts = now;
    split->context_ns = t_ns;
    split->any_context_reading |= valid;
}

void hec_split_contexts_end(struct hec_split *split) {
    if (split->contexts >= 0)
        lay(split, split->contexts ? LAY_WITH : LAY_WITHOUT, split->context_ns, split->end_ns, 0);
}

static double width_s(const struct hec_split *split, int at) {
    int64_t start = at * split->width_ns;
    int64_t end = start + split->width_ns;
    return (double)((end < split->end_ns ? end : split->end_ns) - start) / HEC_NS_PER_S;
}

static bool known(const struct bin *bin, double seconds) {
    return bin->known_s >= 0.5 * seconds;
}

static double activity(const struct bin *bin) {
    return fmin(1, fmax(0, (double)bin->active_s / (double)bin->known_s));
}

static bool quiet(const struct hec_split *split, int at, bool with_context) {
    if (at < 0 || at >= split->count)
        return true; /* beyond the run nothing is known, and nothing disturbs */
    const struct bin *bin = &split->bins[at];
    double seconds = width_s(split, at);
    return known(bin, seconds) && activity(bin) <= HEC_USE_NOISE &&
           (with_context ? bin->with_s : bin->without_s) > 0.99 * seconds && bin->power_s > 0.5 * seconds;
}

struct levels {
    double with_w, with_s;       /* idle with a context: mean power, time it was seen for */
    double without_w, without_s; /* idle without */
    double with_minimum_w;       /* lowest power of a bin with a context */
    double unknown_s;            /* no reading of the activity, and not known to be without context */
    double contradiction_s;      /* active with no context listed */
};

static double watts_of(const struct bin *bin) {
    return (double)bin->joules / (double)bin->power_s;
}

static struct levels measure(const struct hec_split *split) {
    struct levels levels = {.with_minimum_w = INFINITY};
    double with_j = 0, without_j = 0;
    for (int i = 0; i < split->count; i++)
        if (split->bins[i].with_s > 0 && split->bins[i].power_s > 0.5 * width_s(split, i))
            levels.with_minimum_w = fmin(levels.with_minimum_w, watts_of(&split->bins[i]));
    double highest_w = split->coarse ? COARSE_FLOOR * levels.with_minimum_w : INFINITY;
    for (int i = 0; i < split->count; i++) {
        const struct bin *bin = &split->bins[i];
        double seconds = width_s(split, i);
        if (quiet(split, i, true) && quiet(split, i - 1, true) && quiet(split, i + 1, true) &&
            watts_of(bin) <= highest_w) {
            with_j += (double)bin->joules;
            levels.with_s += (double)bin->power_s;
        }
        if (quiet(split, i, false) && quiet(split, i - 1, false) && quiet(split, i + 1, false)) {
            without_j += (double)bin->joules;
            levels.without_s += (double)bin->power_s;
        }
        if (!known(bin, seconds) && bin->without_s < 0.5 * seconds)
            levels.unknown_s += seconds;
        if (known(bin, seconds) && activity(bin) > 0.05 && bin->without_s > 0.99 * seconds)
            levels.contradiction_s += seconds;
    }
    levels.with_w = with_j / levels.with_s;
    levels.without_w = without_j / levels.without_s;
    return levels;
}

/* Time and energy of the bins by kind; the level applies to idle-with-context only. */
struct sums {
    double with_s, without_s, without_j;
};

static bool without_context(const struct bin *bin, double seconds, const struct levels *levels) {
    if (bin->with_s > 0 || bin->without_s > 0)
        return bin->without_s > bin->with_s;
    if (!(levels->without_s > 0) || !(levels->with_s > 0) || bin->power_s < 0.5 * seconds)
        return false;
    double watts = (double)bin->joules / (double)bin->power_s;
    return (!known(bin, seconds) || activity(bin) <= HEC_USE_NOISE) && watts < (levels->with_w + levels->without_w) / 2;
}

static struct sums add_up(const struct hec_split *split, const struct levels *levels) {
    struct sums sums = {0};
    for (int i = 0; i < split->count; i++) {
        const struct bin *bin = &split->bins[i];
        double seconds = width_s(split, i);
        if (without_context(bin, seconds, levels)) {
            double share = known(bin, seconds) ? 1 - activity(bin) : 1;
            sums.without_s += seconds * share;
            if (bin->power_s > 0)
                sums.without_j += (double)bin->joules / (double)bin->power_s * seconds * share;
        } else if (known(bin, seconds)) {
            sums.with_s += seconds * (1 - activity(bin));
        }
    }
    return sums;
}

static int by_value(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* The power below which a twentieth of the time with a context lies, if half of the idle time (idle_share of the whole) has
 * that level too; else NAN, as when memory is short. */
static double low_level(const struct hec_split *split, double idle_share) {
    float *watts = malloc(((size_t)split->count + 1) * sizeof *watts);
    size_t count = 0;
    double sum = 0;
    if (!watts)
        return NAN;
    for (int i = 0; i < split->count; i++) {
        const struct bin *bin = &split->bins[i];
        if (bin->with_s > 0.5 * width_s(split, i) && bin->power_s > 0.5 * width_s(split, i))
            sum += watts[count++] = (float)watts_of(bin);
    }
    qsort(watts, count, sizeof *watts, by_value);
    double level = count ? (double)watts[(size_t)(HEC_SPLIT_LOWEST * (double)count)] : NAN;
    if (count && ((double)watts[(size_t)(0.5 * idle_share * (double)count)] > ESTIMATE_SPREAD * level ||
                  level > ESTIMATE_DEPTH * sum / (double)count))
        level = NAN;
    free(watts);
    return level;
}

void hec_split_result(struct hec_split *split, struct hec_energy *energy) {
    struct levels levels = measure(split);
    double total_s = (double)split->end_ns / HEC_NS_PER_S;
    energy->idle_source = !isfinite(energy->joules) || !(energy->coverage > 0) ? HEC_BECAUSE(LEVEL_NO_ENERGY)
                          : !split->any_context_reading                        ? HEC_BECAUSE(LEVEL_NO_CONTEXTS)
                          : levels.unknown_s > UNKNOWN_SHARE_MAX * total_s     ? HEC_BECAUSE(LEVEL_NO_ACTIVITY)
                          : levels.contradiction_s > 0.01 * total_s            ? HEC_BECAUSE(LEVEL_CONTRADICTED)
                                                                               : HEC_BECAUSE(NONE);
    if (energy->idle_source.id)
        return;
    struct sums sums = add_up(split, &levels);
    /* Levels come from the samples, the total from the counter: put both on the counter's scale. */
    double scale = isfinite(energy->disagreement) ? 1 / (1 + energy->disagreement) : 1;
    energy->idle_context_s = sums.with_s;
    energy->idle_s = sums.without_s;
    energy->work_s = fmax(0, energy->window_s - sums.with_s - sums.without_s);
    energy->idle_joules = fmin(energy->joules, sums.without_j * scale);
    double rest = energy->joules - energy->idle_joules, low_w = NAN;
    if (levels.with_s < HEC_SPLIT_LEVEL_S && sums.with_s >= ESTIMATE_SHARE_MIN * total_s)
        low_w = low_level(split, sums.with_s / total_s);
    if (!(sums.with_s > 0)) {
        energy->idle_context_joules = 0;
        energy->idle_source = HEC_BECAUSE(LEVEL_NOT_NEEDED);
    } else if (split->copies || (levels.with_s < HEC_SPLIT_LEVEL_S && !isfinite(low_w))) {
        energy->idle_source = split->copies ? HEC_BECAUSE(LEVEL_COPIES) : HEC_BECAUSE(LEVEL_NEVER_IDLE);
        if (isfinite(levels.with_minimum_w)) /* idle draws no more than the lowest power seen with a context */
            energy->idle_unknown_max_joules = fmin(rest, sums.with_s * levels.with_minimum_w * scale);
        return;
    } else {
        bool measured = levels.with_s >= HEC_SPLIT_LEVEL_S;
        energy->idle_context_watts = (measured ? levels.with_w : low_w) * scale;
        energy->idle_context_joules = fmin(rest, sums.with_s * energy->idle_context_watts);
        energy->idle_source = !measured       ? HEC_BECAUSE(LEVEL_LOWEST)
                              : split->coarse ? HEC_BECAUSE_OF(LEVEL_UTILISATION, levels.with_s)
                                              : HEC_BECAUSE_OF(LEVEL_MEASURED, levels.with_s);
    }
    energy->work_joules = rest - energy->idle_context_joules;
}
