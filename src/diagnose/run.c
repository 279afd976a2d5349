/* What a run says of itself, what it took in all, and what its host did. */
#include "base/clock.h"
#include "diagnose/build.h"
#include "diagnose/meter/meter.h"
#include "diagnose/physics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool grave(enum hec_event_kind kind) {
    return kind == HEC_EVENT_DEVICE_LOST || kind == HEC_EVENT_COUNTER_RESET || kind == HEC_EVENT_STORE_FAILED ||
           kind == HEC_EVENT_DAMAGED || kind == HEC_EVENT_SENSOR_FAILED || kind == HEC_EVENT_SOURCE_UNAVAILABLE;
}

/* NULL: there is no room for it. */
static struct hec_event_summary *add_event(struct hec_summary *out, enum hec_event_kind kind, int device, int64_t t_ns,
                                           const char *text) {
    int at = out->event_count;
    if (at == HEC_SUMMARY_EVENTS_MAX) { /* a grave one takes the place of the last that is not */
        out->events_omitted++;
        do
            at--;
        while (at >= 0 && (!grave(kind) || grave(out->events[at].kind)));
        if (at < 0)
            return NULL;
        memmove(&out->events[at], &out->events[at + 1],
                (size_t)(HEC_SUMMARY_EVENTS_MAX - 1 - at) * sizeof out->events[0]);
        at = HEC_SUMMARY_EVENTS_MAX - 1;
    } else {
        out->event_count++;
    }
    struct hec_event_summary *event = &out->events[at];
    *event = (struct hec_event_summary){.kind = kind, .device = device, .t_s = (double)t_ns / HEC_NS_PER_S};
    hec_copy_text(event->text, sizeof event->text, text);
    return event;
}

static int take_event(void *context, enum hec_event_kind kind, int device, int64_t t_ns, const char *text) {
    struct hec_build *b = context;
    struct hec_summary *out = b->out;
    if (device >= 0 && device < HEC_DEVICE_MAX) {
        if (kind == HEC_EVENT_DEVICE_LOST && t_ns < b->lost_ns[device])
            b->lost_ns[device] = t_ns;
        if ((kind == HEC_EVENT_SENSOR_FAILED || kind == HEC_EVENT_SOURCE_UNAVAILABLE) && !b->sensor_failed[device][0])
            hec_copy_text(b->sensor_failed[device], sizeof b->sensor_failed[device], text);
    }
    if (kind == HEC_EVENT_GAP && device == HEC_DEVICE_NONE && strstr(text, HEC_GAP_DRIVER))
        hec_copy_text(b->no_answer, sizeof b->no_answer, text);
    hec_knob_take(b, kind, text);
    out->hooks_out += kind == HEC_EVENT_HOOKS_OUT;
    out->hooks_late += kind == HEC_EVENT_HOOKS_LATE;
    add_event(out, kind, device, t_ns, text);
    return 0;
}

static int take_unit(void *context, const char *name, double count) {
    struct hec_summary *out = ((struct hec_build *)context)->out;
    if (out->unit_count >= HEC_SUMMARY_UNITS_MAX || !isfinite(count) || count < 0)
        return 0;
    struct hec_unit_summary *unit = &out->units[out->unit_count++];
    hec_copy_text(unit->name, sizeof unit->name, name && name[0] ? name : "unit");
    unit->count = count;
    return 0;
}

const char *const hec_step_part_phases[HEC_STEP_PARTS] = {"part/forward", "part/backward", "part/optimizer"};

static int take_phase(void *context, const char *name, int64_t total_ns, int64_t count) {
    struct hec_summary *out = ((struct hec_build *)context)->out;
    for (int i = 0; i < HEC_STEP_PARTS; i++)
        if (strcmp(name, hec_step_part_phases[i]) == 0)
            return 0;
    if (out->phase_count >= HEC_SUMMARY_PHASES_MAX)
        return 0;
    struct hec_phase_summary *phase = &out->phases[out->phase_count++];
    hec_copy_text(phase->name, sizeof phase->name, name);
    phase->seconds = (double)total_ns / HEC_NS_PER_S;
    phase->count = count;
    return 0;
}

static int take_device(void *context, const struct hec_device *device) {
    struct hec_summary *out = ((struct hec_build *)context)->out;
    if (out->device_count >= HEC_DEVICE_MAX)
        return 0;
    struct hec_device_diagnosis *grown = realloc(out->devices, (size_t)(out->device_count + 1) * sizeof *grown);
    if (!grown)
        return HEC_ERR_NOMEM;
    out->devices = grown;
    memset(&grown[out->device_count], 0, sizeof *grown);
    grown[out->device_count++].readings.device = *device;
    return 0;
}

/* Sources are read about once a second at least: what is silent for longer than this has ended. */
#define SILENT_NS (2 * HEC_NS_PER_S)

/* The later one's last reading; 0: there is none. */
static int last_of(struct hec_build *b, enum hec_metric metric, enum hec_metric other, int32_t subject,
                   int64_t *last_ns, struct hec_why *why) {
    struct hec_range range = {0}, second = {0};
    *last_ns = 0;
    int err = hec_meter_range(&b->meter, metric, subject, &range, why);
    if (!err)
        err = hec_meter_range(&b->meter, other, subject, &second, why);
    if (!err && range.count)
        *last_ns = range.last_ns;
    if (!err && second.count && second.last_ns > *last_ns)
        *last_ns = second.last_ns;
    return err;
}

/* The length of a run that was cut off, or goes on: as far as the host and each device were read that were still being
 * read. Some is read later than the rest, and what was not read yet is no gap. */
static int derive_end(struct hec_build *b, struct hec_why *why) {
    int64_t ends_ns[2 + HEC_DEVICE_MAX], latest_ns = 0;
    int count = 2, err;
    b->meter.end_ns = b->input->end_ns;
    if (b->meter.end_ns > 0)
        return 0;
    err = last_of(b, HEC_SELF_CPU, HEC_HOST_CPU_BUSY, 0, &ends_ns[0], why);
    if (!err)
        err = last_of(b, HEC_TREE_CPU, HEC_TREE_CPU, 0, &ends_ns[1], why);
    for (int i = 0; i < b->out->device_count && i < HEC_DEVICE_MAX && !err; i++)
        err =
            last_of(b, HEC_GPU_POWER, HEC_GPU_ENERGY, b->out->devices[i].readings.device.index, &ends_ns[count++], why);
    if (err)
        return err;
    for (int i = 0; i < count; i++)
        latest_ns = ends_ns[i] > latest_ns ? ends_ns[i] : latest_ns;
    b->meter.end_ns = latest_ns;
    for (int i = 0; i < count; i++)
        if (ends_ns[i] > 0 && ends_ns[i] >= latest_ns - SILENT_NS && ends_ns[i] < b->meter.end_ns)
            b->meter.end_ns = ends_ns[i];
    return 0;
}

static void read_gradients(const struct hec_summary_input *in, struct hec_gradient_syncs *out) {
    long long syncs, passes, steps, bytes, bucket_bytes;
    if (!in->gradient_syncs || sscanf(in->gradient_syncs, "%lld %lld %lld", &syncs, &passes, &steps) != 3 ||
        syncs < 0 || passes < syncs || steps < 1)
        return;
    *out = (struct hec_gradient_syncs){.syncs = syncs, .passes = passes, .steps = steps};
    if (in->gradients && sscanf(in->gradients, "%lld %lld", &bytes, &bucket_bytes) == 2 && bytes > 0 &&
        bucket_bytes >= 0) {
        out->bytes = (double)bytes;
        out->bucket_bytes = (double)bucket_bytes;
    }
}

static void label(const struct hec_summary_input *in, struct hec_summary *out) {
    hec_copy_text(out->command, sizeof out->command, in->command);
    hec_copy_text(out->started, sizeof out->started, in->started);
    hec_copy_text(out->file, sizeof out->file, in->file);
    hec_copy_text(out->hec_version, sizeof out->hec_version, in->hec_version);
    hec_copy_text(out->hostname, sizeof out->hostname, in->hostname);
    hec_copy_text(out->simulated, sizeof out->simulated, in->simulated);
    hec_copy_text(out->imported, sizeof out->imported, in->imported);
    hec_copy_text(out->cpu, sizeof out->cpu, in->cpu);
    hec_copy_text(out->os, sizeof out->os, in->os);
    hec_copy_text(out->stopped, sizeof out->stopped, in->stopped);
    hec_copy_text(out->kernel, sizeof out->kernel, in->kernel);
    hec_copy_text(out->pytorch, sizeof out->pytorch, in->pytorch);
    hec_copy_text(out->python, sizeof out->python, in->python);
    hec_copy_text(out->framework, sizeof out->framework, in->framework);
    for (int i = 0; i < HEC_STEP_PARTS; i++) {
        long long ns = 0, times = 0;
        bool known =
            in->step_part[i] && sscanf(in->step_part[i], "%lld %lld", &ns, &times) == 2 && ns >= 0 && times > 0;
        out->step_part[i].seconds = known ? (double)ns / HEC_NS_PER_S : NAN;
        out->step_part[i].count = known ? times : 0;
    }
    hec_model_flops_read(in->flops, in->flops_why, &out->flops);
    hec_model_products_read(in->products, &out->flops);
    hec_copy_text(out->step_module, sizeof out->step_module, in->step_module);
    hec_copy_text(out->samples_by, sizeof out->samples_by, in->samples_by);
    out->lever_count = in->levers ? in->levers(in->context, out->levers) : 0;
    out->exit_code = in->exit_code;
    out->loader_workers = in->loader_workers;
    out->job.size = in->ranks;
    out->job.joined = in->joined ? (int)strtol(in->joined, NULL, 10) : 0;
    hec_copy_text(out->job.joined_by, sizeof out->job.joined_by, in->joined_by);
    read_gradients(in, &out->job.gradients);
    out->complete = in->complete;
    out->in_progress = in->in_progress;
}

int hec_run_read(struct hec_build *b, struct hec_why *why) {
    const struct hec_summary_input *in = b->input;
    int err;
    for (int i = 0; i < HEC_DEVICE_MAX; i++)
        b->lost_ns[i] = INT64_MAX;
    label(in, b->out);
    if ((err = hec_sizes_read(in, &b->out->sizes)) != 0)
        return err;
    if ((in->devices && (err = hec_table_absent(in->devices(in->context, take_device, b, why))) != 0) ||
        (in->events && (err = hec_table_absent(in->events(in->context, take_event, b, why))) != 0) ||
        (in->units && (err = hec_table_absent(in->units(in->context, take_unit, b, why))) != 0) ||
        (in->phases && (err = hec_table_absent(in->phases(in->context, take_phase, b, why))) != 0) ||
        (err = derive_end(b, why)) != 0)
        return err;
    b->out->seconds = (double)b->meter.end_ns / HEC_NS_PER_S;
    return 0;
}

void hec_run_left_out(struct hec_build *b) {
    const char *what = b->input->left_out ? b->input->left_out(b->input->context) : NULL;
    struct hec_event_summary *event =
        what ? add_event(b->out, HEC_EVENT_DAMAGED, HEC_DEVICE_NONE, b->meter.end_ns, what) : NULL;
    if (event)
        event->left_out = true;
}

/* ---- joules, money and CO2, of the run and of its units of work ---- */

/* Joules of the used devices among those (bits by index); both are NAN unless all of them are valid. Returns how many. */
static int add_energy(const struct hec_summary *out, uint64_t devices, double *joules, double *bound) {
    int used = 0;
    bool all_valid = true;
    *joules = *bound = 0;
    for (int i = 0; i < out->device_count; i++) {
        const struct hec_device_summary *d = &out->devices[i].readings;
        if (!d->used || !(devices & hec_device_bit(d->device.index)))
            continue;
        used++;
        all_valid &= d->energy.valid;
        *joules += d->energy.joules;
        *bound += d->energy.bound_joules; /* errors of devices may have one cause (a late clock): no square root */
    }
    if (!used || !all_valid)
        *joules = *bound = NAN;
    return used;
}

static double dollars_of(const struct hec_summary *out, double joules, int devices) {
    double hours = out->price.dollars_per_gpu_hour > 0 ? devices * out->seconds / 3600 : 0;
    return joules / HEC_JOULES_PER_KWH * out->price.dollars_per_kwh + hours * out->price.dollars_per_gpu_hour;
}

/* What was measured of the grid while it ran stands for a default that nobody chose. */
static void price_carbon(struct hec_price *price, const char *carbon) {
    char *label;
    double grams = carbon ? strtod(carbon, &label) : NAN;
    if (!price->carbon_default || !isfinite(grams) || grams < 0 || label == carbon || *label != ' ' || !label[1])
        return;
    price->grams_co2_per_kwh = grams;
    price->carbon_default = false;
    hec_copy_text(price->carbon_from, sizeof price->carbon_from, label + 1);
}

static void add_totals(struct hec_summary *out) {
    int used = add_energy(out, UINT64_MAX, &out->joules, &out->bound_joules);
    out->dollars = dollars_of(out, out->joules, used);
    out->grams_co2 = out->joules / HEC_JOULES_PER_KWH * out->price.grams_co2_per_kwh;
}

/* The devices of the programs whose steps count this unit; all that are used where there are no steps. */
static uint64_t devices_of(const struct hec_summary *out, const char *unit, uint64_t used) {
    uint64_t devices = 0;
    for (int i = 0; i < out->device_count; i++) {
        const struct hec_device_diagnosis *d = &out->devices[i];
        if (d->readings.used && d->steps.count && d->steps.units > 0 && strcmp(d->steps.unit, unit) == 0)
            devices |= hec_device_bit(d->readings.device.index);
    }
    return devices ? devices : used;
}

static void price_units(struct hec_summary *out) {
    uint64_t used = 0;
    for (int i = 0; i < out->device_count; i++)
        used |= out->devices[i].readings.used ? hec_device_bit(out->devices[i].readings.device.index) : 0;
    if (!out->unit_count) {
        struct hec_unit_summary *unit = &out->units[out->unit_count++];
        *unit = (struct hec_unit_summary){.name = "run", .is_default = true, .count = 1};
    }
    for (int i = 0; i < out->unit_count; i++) {
        struct hec_unit_summary *unit = &out->units[i];
        double per = unit->count > 0 ? 1 / unit->count : NAN, joules, bound;
        unit->devices = unit->is_default ? used : devices_of(out, unit->name, used);
        unit->part_of_devices = unit->devices != used;
        int devices = add_energy(out, unit->devices, &joules, &bound);
        unit->per_second = out->seconds > 0 ? unit->count / out->seconds : NAN;
        unit->joules_per_unit = joules * per;
        unit->joules_per_unit_bound = bound * per;
        unit->dollars_per_unit = dollars_of(out, joules, devices) * per;
        unit->grams_co2_per_unit = joules / HEC_JOULES_PER_KWH * out->price.grams_co2_per_kwh * per;
    }
}

void hec_totals_find(struct hec_summary *out, const struct hec_price *price, const char *carbon) {
    out->price = *price;
    price_carbon(&out->price, carbon);
    add_totals(out);
    price_units(out);
    hec_loop_units(out);
}

/* ---- the host's and HEC's own rows ---- */

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
static int rapl(struct hec_meter *meter, enum hec_metric metric, double *joules, struct hec_reason *reason,
                struct hec_reason absent, struct hec_why *why) {
    const struct hec_summary_input *input = meter->input;
    int32_t *subjects = NULL;
    int count = input->subjects ? input->subjects(input->context, metric, &subjects, why) : 0;
    int err = count < 0 && count != HEC_ERR_NOTFOUND ? count : 0;
    *joules = NAN;
    if (count <= 0)
        *reason = absent;
    for (int i = 0; i < count && !err; i++) {
        struct hec_range range;
        err = hec_meter_range(meter, metric, subjects[i], &range, why);
        double covered = range.count > 1 ? (double)(range.last_ns - range.first_ns) / (double)meter->end_ns : 0;
        if (err)
            break;
        if (!(covered >= RAPL_COVERAGE_MIN) || range.last < range.first) {
            *joules = NAN;
            *reason = range.last < range.first ? HEC_BECAUSE_OF(PACKAGE_BACKWARDS, subjects[i])
                                               : HEC_BECAUSE_OF(PACKAGE_UNREAD, subjects[i], covered);
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

    const struct hec_reason none = hec_reason_said(no_rapl(out));
    err = rapl(meter, HEC_RAPL_PACKAGE_ENERGY, &host->package_joules, &host->package_why,
               none.id ? none : HEC_BECAUSE(NO_CPU_COUNTER), why);
    if (!err)
        err = rapl(meter, HEC_RAPL_DRAM_ENERGY, &host->dram_joules, &host->dram_why,
                   none.id ? none : HEC_BECAUSE(NO_DRAM_COUNTER), why);
    /* HEC's own energy: its share of the machine's busy CPU time, of the packages' energy. An upper estimate, for idle
     * power is in it too. */
    if (!err && isfinite(host->package_joules) && host->cpu_busy > 0 && host->cores > 0 && out->seconds > 0)
        self->joules =
            host->package_joules * fmin(1, self->cpu_seconds / (host->cpu_busy * host->cores * out->seconds));
    return err;
}
