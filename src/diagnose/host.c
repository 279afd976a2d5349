#include "diagnose/host.h"

#include "base/clock.h"
#include "diagnose/meter/meter.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A counter that was read for less of the run than this is no figure for the run. */
#define RAPL_COVERAGE_MIN 0.95

/* Why there is no RAPL here; NULL: nothing says that there is none. */
static const char *no_rapl(const struct hec_summary *summary) {
    static const char source[] = "rapl: ";
    for (int i = 0; i < summary->event_count; i++)
        if (summary->events[i].kind == HEC_EVENT_SOURCE_UNAVAILABLE &&
            strncmp(summary->events[i].text, source, sizeof source - 1) == 0)
            return summary->events[i].text + sizeof source - 1;
    return NULL;
}

struct mean {
    struct hec_accumulator sum;
    int64_t end_ns;
};

static void mean_step(void *context, int64_t start_ns, int64_t end_ns, double value) {
    struct mean *mean = context;
    start_ns = start_ns < 0 ? 0 : start_ns;
    end_ns = end_ns > mean->end_ns ? mean->end_ns : end_ns;
    if (end_ns > start_ns)
        hec_accumulator_add(&mean->sum, value, (double)(end_ns - start_ns));
}

static int cpu_busy(struct hec_meter *meter, double *busy, struct hec_why *why) {
    struct mean mean = {.end_ns = meter->end_ns};
    hec_accumulator_init(&mean.sum, NULL, 1);
    int err = hec_meter_steps(meter, HEC_HOST_CPU_BUSY, 0, mean_step, &mean, NULL, why);
    if (!err)
        *busy = hec_accumulator_result(&mean.sum, 1e-3).mean;
    return err;
}

/* Totals since the command (or hec) started: the last reading, or the largest for memory. */
struct total {
    enum hec_metric metric;
    bool largest;
    double scale;
    double *out;
};

static int totals(struct hec_meter *meter, const struct total *table, size_t count, struct hec_why *why) {
    for (size_t i = 0; i < count; i++) {
        struct hec_range range;
        int err = hec_meter_range(meter, table[i].metric, 0, &range, why);
        if (err)
            return err;
        *table[i].out = NAN;
        if (range.count)
            *table[i].out = (double)(table[i].largest ? range.maximum : range.last) * table[i].scale;
    }
    return 0;
}

/* Joules of all packages (or all DRAM domains), which must each have been read nearly throughout. */
static int rapl(struct hec_meter *meter, enum hec_metric metric, double *joules, char *reason, size_t size,
                const char *absent, struct hec_why *why) {
    const struct hec_summary_input *input = meter->input;
    int32_t *subjects = NULL;
    int count = input->subjects ? input->subjects(input->context, metric, &subjects, why) : 0;
    int err = count < 0 && count != HEC_ERR_NOTFOUND ? count : 0;
    *joules = NAN;
    if (count <= 0)
        snprintf(reason, size, "%s", absent);
    for (int i = 0; i < count && !err; i++) {
        struct hec_range range;
        err = hec_meter_range(meter, metric, subjects[i], &range, why);
        double covered = range.count > 1 ? (double)(range.last_ns - range.first_ns) / (double)meter->end_ns : 0;
        if (err)
            break;
        if (!(covered >= RAPL_COVERAGE_MIN) || range.last < range.first) {
            *joules = NAN;
            if (range.last < range.first)
                snprintf(reason, size, "the counter of package %d went backwards", (int)subjects[i]);
            else
                snprintf(reason, size, "the counter of package %d was read for only %.0f %% of the run",
                         (int)subjects[i], 100 * covered);
            break;
        }
        /* readings a little outside or inside of the run: by the time they span */
        double scale = 1e-6 / covered;
        *joules = (isfinite(*joules) ? *joules : 0) + ((double)range.last - (double)range.first) * scale;
    }
    free(subjects);
    return err;
}

int hec_host_fill(struct hec_meter *meter, struct hec_summary *out, struct hec_why *why) {
    const struct hec_summary_input *input = meter->input;
    struct hec_host_summary *host = &out->host;
    struct hec_self_summary *self = &out->self;
    const struct total table[] = {
        {HEC_TREE_CPU, false, 1e-3, &host->tree_cpu_seconds},
        {HEC_TREE_RSS, true, 1024, &host->rss_max_bytes},
        {HEC_TREE_READ, false, 1024, &host->read_bytes},
        {HEC_TREE_WRITTEN, false, 1024, &host->written_bytes},
        {HEC_TREE_DISK_READ, false, 1024, &host->disk_read_bytes},
        {HEC_TREE_SWITCHES_VOLUNTARY, false, 1, &host->switches_voluntary},
        {HEC_TREE_SWITCHES_INVOLUNTARY, false, 1, &host->switches_involuntary},
        {HEC_SELF_CPU, false, 1e-6, &self->cpu_seconds},
        {HEC_SELF_RSS, true, 1024, &self->rss_max_bytes},
    };
    host->cores = input->cores;
    host->cores_usable = input->cores_usable;
    self->file_bytes = input->file_bytes;
    self->start_seconds = input->start_seconds;
    self->joules = NAN;
    int err = totals(meter, table, sizeof table / sizeof table[0], why);
    if (err || (err = cpu_busy(meter, &host->cpu_busy, why)) != 0)
        return err;
    if (isfinite(input->tree_cpu_seconds)) /* what wait4 says counts children that no poll saw */
        host->tree_cpu_seconds =
            fmax(input->tree_cpu_seconds, isfinite(host->tree_cpu_seconds) ? host->tree_cpu_seconds : 0);
    if (isfinite(input->tree_rss_max_bytes) && !(host->rss_max_bytes >= input->tree_rss_max_bytes))
        host->rss_max_bytes = input->tree_rss_max_bytes;
    if (isfinite(input->self_cpu_seconds))
        self->cpu_seconds = input->self_cpu_seconds;
    if (isfinite(input->self_rss_max_bytes))
        self->rss_max_bytes = input->self_rss_max_bytes;
    host->tree_cores = out->seconds > 0 ? host->tree_cpu_seconds / out->seconds : NAN;
    self->cpu_share = out->seconds > 0 ? self->cpu_seconds / out->seconds : NAN;

    const char *none = no_rapl(out);
    err = rapl(meter, HEC_RAPL_PACKAGE_ENERGY, &host->package_joules, host->package_why, sizeof host->package_why,
               none ? none : "this machine shows no CPU energy counter (powercap)", why);
    if (!err)
        err = rapl(meter, HEC_RAPL_DRAM_ENERGY, &host->dram_joules, host->dram_why, sizeof host->dram_why,
                   none ? none : "this machine shows no DRAM energy counter (powercap)", why);
    /* HEC's own energy: its share of the machine's busy CPU time, of the packages' energy. An upper estimate, for idle
     * power is in it too. */
    if (!err && isfinite(host->package_joules) && host->cpu_busy > 0 && host->cores > 0 && out->seconds > 0)
        self->joules =
            host->package_joules * fmin(1, self->cpu_seconds / (host->cpu_busy * host->cores * out->seconds));
    return err;
}
