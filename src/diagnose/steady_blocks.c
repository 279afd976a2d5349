#include "diagnose/steady_blocks.h"

#include "base/clock.h"
#include "diagnose/meter/joules.h"
#include "diagnose/meter/stat.h"
#include "diagnose/timeline/pass.h"
#include "diagnose/result.h"
#include "diagnose/states/steady.h"
#include "model/part.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_LEAST_NS (HEC_NS_PER_S / 4) /* 12 samples of a power history */
#define BLOCK_LEAST_POLLED_NS (3 * HEC_NS_PER_S)
#define BOUND_MOST 0.5 /* of joules: beyond it they are no figure, as of phases */

/* The part of the run, and its blocks: block i is [edge[i], edge[i + 1]). */
struct part {
    const struct hec_step_list *steps; /* NULL: by time */
    int64_t edge[HEC_STEADY_BLOCKS_MAX + 1];
    double counted[HEC_STEADY_BLOCKS_MAX]; /* steps */
    double units[HEC_STEADY_BLOCKS_MAX];
    int count;
};

/* ---- the blocks ---- */

static int64_t least_ns(const struct hec_summary *s) {
    for (int i = 0; i < s->device_count; i++)
        if (s->devices[i].readings.used && !s->devices[i].readings.device.has_power_history && !s->imported[0])
            return BLOCK_LEAST_POLLED_NS;
    return BLOCK_LEAST_NS;
}

static int64_t at_least_1(int64_t number) {
    return number < 1 ? 1 : number;
}

static int64_t number_of_blocks(const struct hec_summary *s, int64_t length_ns, int64_t most) {
    int64_t count = length_ns / least_ns(s);
    count = count < HEC_STEADY_BLOCKS_MAX ? count : HEC_STEADY_BLOCKS_MAX;
    return at_least_1(count < most ? count : most);
}

/* Steps may overlap: a block ends where all of its steps have. */
static void by_steps(struct part *part, const struct hec_summary *s, const struct hec_steady *steady) {
    const struct hec_step *step = part->steps->list;
    int64_t steps = (int64_t)steady->steps, first = (int64_t)part->steps->count - steps, done = 0;
    int64_t blocks = number_of_blocks(s, steady->to_ns - steady->from_ns, steps), end_ns = steady->from_ns;
    part->edge[0] = steady->from_ns;
    for (int64_t i = 0; i < blocks; i++) {
        int64_t before = done;
        for (; done < (i + 1) * steps / blocks; done++)
            end_ns = step[first + done].end_ns > end_ns ? step[first + done].end_ns : end_ns;
        if (end_ns <= part->edge[part->count]) { /* of no length: to the one before, if there is one */
            part->counted[part->count ? part->count - 1 : 0] += (double)(done - before);
            continue;
        }
        part->counted[part->count] += (double)(done - before);
        part->edge[++part->count] = end_ns;
    }
}

static void by_time(struct part *part, const struct hec_summary *s, int64_t from_ns, int64_t to_ns) {
    if (to_ns <= from_ns)
        return;
    part->count = (int)number_of_blocks(s, to_ns - from_ns, HEC_STEADY_BLOCKS_MAX);
    for (int i = 0; i <= part->count; i++)
        part->edge[i] = from_ns + (to_ns - from_ns) / part->count * i;
    part->edge[part->count] = to_ns;
}

/* In which any used device was in use: the whole run where nothing tells. */
static void time_in_use(const struct hec_summary *s, int64_t end_ns, int64_t *from_ns, int64_t *to_ns) {
    double from_s = INFINITY, to_s = -INFINITY;
    for (int i = 0; i < s->device_count; i++)
        if (s->devices[i].readings.used && isfinite(s->devices[i].readings.activity.from_s)) {
            from_s = fmin(from_s, s->devices[i].readings.activity.from_s);
            to_s = fmax(to_s, s->devices[i].readings.activity.to_s);
        }
    *from_ns = to_s > from_s ? llround(from_s * HEC_NS_PER_S) : 0;
    *to_ns = to_s > from_s ? llround(to_s * HEC_NS_PER_S) : end_ns;
}

/* ---- units ---- */

/* The lists that count the run's work: of every process, by the source that the run goes by. */
static bool counts(const struct hec_step_list *list, const struct hec_step_list *steps, bool all) {
    return list == steps || (all && list->source == steps->source);
}

/* Of a step, its part inside each block. */
static void spread(struct part *part, const struct hec_step *step, double amount) {
    int64_t length = step->end_ns - step->start_ns;
    int low = 0, high = part->count; /* the block that holds its start, or the first one */
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (part->edge[middle] <= step->start_ns)
            low = middle;
        else
            high = middle;
    }
    for (int i = low; i < part->count && part->edge[i] < step->end_ns; i++) {
        int64_t from = step->start_ns > part->edge[i] ? step->start_ns : part->edge[i];
        int64_t to = step->end_ns < part->edge[i + 1] ? step->end_ns : part->edge[i + 1];
        if (to > from)
            part->units[i] += amount * (double)(to - from) / (double)length;
    }
}

/* Units that nobody laid to steps (--units) count as done by steps in proportion to what these say, or by each alike. */
static void count_units(const struct hec_pass *pass, struct part *part, const struct hec_unit_summary *unit) {
    const struct hec_step_survey *survey = &pass->survey;
    bool amounts = false;
    double total = 0;
    for (size_t i = 0; i < survey->list_count && unit; i++)
        for (size_t k = 0; k < survey->lists[i].count && !amounts && counts(&survey->lists[i], part->steps, true); k++)
            amounts = survey->lists[i].list[k].amount > 0;
    for (size_t i = 0; i < survey->list_count; i++) {
        const struct hec_step_list *list = &survey->lists[i];
        if (!counts(list, part->steps, unit != NULL))
            continue;
        for (size_t k = 0; k < list->count; k++) {
            double amount = !amounts ? 1 : list->list[k].amount > 0 ? list->list[k].amount : 0;
            total += amount;
            spread(part, &list->list[k], amount);
        }
        total += amounts ? list->beyond_amount : (double)list->beyond;
    }
    for (int i = 0; i < part->count; i++)
        part->units[i] *= !unit ? 1 : total > 0 ? unit->count / total : NAN;
}

static void set_work(const struct hec_pass *pass, struct part *part, const struct hec_unit_summary *unit,
                     struct hec_steady_blocks *out) {
    int64_t length_ns = part->edge[part->count] - part->edge[0];
    snprintf(out->unit, sizeof out->unit, "%s", unit ? unit->name : part->steps ? "step" : "");
    out->work = part->steps ? HEC_WORK_BY_STEP : unit ? HEC_WORK_EVENLY : HEC_WORK_UNKNOWN;
    for (int i = 0; i < part->count; i++) {
        int64_t block_ns = part->edge[i + 1] - part->edge[i];
        out->block[i].seconds = (double)block_ns / HEC_NS_PER_S;
        out->block[i].steps = part->steps ? part->counted[i] : NAN;
        part->units[i] = part->steps ? 0 : unit ? unit->count * (double)block_ns / (double)length_ns : NAN;
    }
    if (part->steps)
        count_units(pass, part, unit);
    for (int i = 0; i < part->count; i++)
        out->block[i].units = part->units[i];
}

/* ---- joules ---- */

static int add_joules(struct hec_meter *meter, const struct hec_summary *s, const struct part *part,
                      struct hec_steady_blocks *out, struct hec_why *why) {
    struct hec_joules of[HEC_STEADY_BLOCKS_MAX];
    int used = 0, err = 0;
    bool valid = true;
    for (int i = 0; i < s->device_count; i++) {
        used += s->devices[i].readings.used;
        valid &= !s->devices[i].readings.used || s->devices[i].readings.energy.valid;
    }
    for (int i = 0; i < part->count; i++)
        out->block[i].joules = used && valid ? 0 : NAN;
    for (int i = 0; i < s->device_count && used && valid && !err; i++)
        if (s->devices[i].readings.used) {
            err = hec_meter_joules(meter, &s->devices[i].readings, part->edge, part->count, of, why);
            for (int k = 0; k < part->count && !err; k++)
                out->block[k].joules += of[k].joules;
        }
    return err;
}

/* ---- the whole ---- */

/* Of the steps that the blocks hold. */
static int time_steps(const struct part *part, const struct hec_steady *steady, struct hec_steady_blocks *out) {
    size_t first = part->steps->count - steady->steps;
    double *seconds = malloc(steady->steps * sizeof *seconds);
    if (!seconds)
        return HEC_ERR_NOMEM;
    for (size_t i = 0; i < steady->steps; i++) {
        const struct hec_step *step = &part->steps->list[first + i];
        seconds[i] = (double)(step->end_ns - step->start_ns) / HEC_NS_PER_S;
    }
    struct hec_quantiles of = hec_quantiles_of(seconds, steady->steps);
    out->step_p50 = of.median;
    out->step_p99 = of.p99;
    free(seconds);
    return HEC_OK;
}

int hec_steady_blocks_build(const struct hec_pass *pass, struct hec_meter *meter, const struct hec_summary *s,
                            struct hec_steady_blocks *out, struct hec_why *why) {
    const struct hec_unit_summary *unit = s->unit_count && s->units[0].count > 0 ? &s->units[0] : NULL;
    struct part part = {.steps = hec_step_survey_best(&pass->survey, &pass->tables)};
    struct hec_steady steady = hec_steady_of(part.steps);
    int64_t from_ns = 0, to_ns = meter->end_ns;
    memset(out, 0, sizeof *out);
    out->step_p50 = out->step_p99 = NAN;
    if (steady.known) {
        by_steps(&part, s, &steady);
        int err = time_steps(&part, &steady, out);
        if (err)
            return err;
    } else {
        part.steps = NULL;
        if (!unit)
            time_in_use(s, meter->end_ns, &from_ns, &to_ns);
        by_time(&part, s, from_ns, to_ns);
    }
    if (!part.count)
        return HEC_OK;
    out->count = part.count;
    set_work(pass, &part, unit, out);
    int err = add_joules(meter, s, &part, out, why);
    for (int i = 0; i < out->count; i++) {
        out->whole.seconds += out->block[i].seconds;
        out->whole.joules += out->block[i].joules;
        out->whole.units += out->block[i].units;
        out->whole.steps += out->block[i].steps;
    }
    return err;
}

/* ---- the loop ---- */

/* Of one line of the program, in whatever state the device was. */
static double set_up_samples(const struct hec_source_lines *lines, const struct hec_source_line *line) {
    double samples = 0;
    for (int i = 0; i < lines->count; i++)
        if (lines->lines[i].line == line->line && strcmp(lines->lines[i].file, line->file) == 0)
            samples += (double)lines->lines[i].samples;
    return samples;
}

static double all_samples(const struct hec_source_lines *lines) {
    double samples = 0;
    for (int i = 0; i < lines->count; i++) /* a line of each state tells how many there are of it */
        if (!i || lines->lines[i].state != lines->lines[i - 1].state)
            samples += (double)lines->lines[i].samples / lines->lines[i].share;
    return samples;
}

/* The line that held up most of set-up, on the first device that has any. */
static void set_up_line(const struct hec_summary *s, struct hec_loop *out) {
    for (int i = 0; i < s->device_count && !(out->setup_line.share > 0); i++) {
        const struct hec_source_lines *lines = &s->devices[i].setup_source;
        double all = all_samples(lines);
        for (int k = 0; k < lines->count && all > 0; k++) {
            const struct hec_source_line *line = &lines->lines[k];
            double share = set_up_samples(lines, line) / all;
            if (share <= out->setup_line.share)
                continue;
            out->setup_line = (struct hec_finding_line){.line = line->line, .share = fmin(share, 1)};
            snprintf(out->setup_line.file, sizeof out->setup_line.file, "%s", line->file);
            snprintf(out->setup_line.function, sizeof out->setup_line.function, "%s", line->function);
        }
    }
}

static int part_joules(struct hec_meter *meter, const struct hec_device_diagnosis *d, const struct part *part,
                       struct hec_loop *out, struct hec_why *why) {
    struct hec_joules of[HEC_RUN_PARTS];
    int index = d->readings.device.index;
    int err = d->readings.energy.valid ? hec_meter_joules(meter, &d->readings, part->edge, HEC_RUN_PARTS, of, why) : 0;
    for (int i = 0; i < HEC_RUN_PARTS && !err; i++) {
        double joules = d->readings.energy.valid ? of[i].joules : NAN;
        out->joules[i] += joules;
        out->bound_joules[i] += d->readings.energy.valid ? of[i].bound : NAN;
        if (i == HEC_RUN_LOOP && hec_device_bit(index)) {
            out->device_joules[index] = joules;
            out->device_bound[index] = d->readings.energy.valid ? of[i].bound : NAN;
        }
    }
    return err;
}

/* The work of a unit in the loop, charged to the devices of its programs. */
static void unit_in_loop(struct hec_unit_summary *unit, const struct hec_summary *s) {
    const struct hec_loop *loop = &s->loop;
    double joules = 0, bound = 0;
    int used = 0;
    for (int i = 0; i < s->device_count; i++) {
        int index = s->devices[i].readings.device.index;
        if (!s->devices[i].readings.used || !(unit->devices & hec_device_bit(index)))
            continue;
        joules += loop->device_joules[index];
        bound += loop->device_bound[index];
        used++;
    }
    unit->loop_per_second = unit->loop_count / loop->seconds[HEC_RUN_LOOP];
    bool known = used && bound <= BOUND_MOST * joules;
    unit->loop_joules_per_unit = known ? joules / unit->loop_count : NAN;
    unit->loop_joules_per_unit_bound = known ? bound / unit->loop_count : NAN;
}

void hec_loop_units(struct hec_summary *s) {
    for (int i = 0; i < s->unit_count; i++) {
        struct hec_unit_summary *unit = &s->units[i];
        if (s->loop.known && unit->loop_count > 0)
            unit_in_loop(unit, s);
        else
            unit->loop_count = unit->loop_per_second = unit->loop_joules_per_unit = unit->loop_joules_per_unit_bound =
                NAN;
    }
}

#define TENSOR_COVERAGE_MIN 0.8 /* of the loop: a mean of less is none of it */

struct mean {
    int64_t from_ns, to_ns, length_ns;
    double sum;
};

static void add_to_mean(void *context, int64_t start_ns, int64_t end_ns, double value) {
    struct mean *mean = context;
    int64_t from = start_ns > mean->from_ns ? start_ns : mean->from_ns,
            to = end_ns < mean->to_ns ? end_ns : mean->to_ns;
    if (to <= from)
        return;
    mean->length_ns += to - from;
    mean->sum += value * (double)(to - from);
}

static int tensor_in_loop(struct hec_meter *meter, struct hec_device_diagnosis *d, const struct part *part,
                          struct hec_why *why) {
    struct mean mean = {.from_ns = part->edge[HEC_RUN_LOOP], .to_ns = part->edge[HEC_RUN_LOOP + 1]};
    int err = hec_meter_steps(meter, HEC_GPM_TENSOR_ACTIVE, d->readings.device.index, add_to_mean, &mean, NULL, why);
    if (err || (double)mean.length_ns < TENSOR_COVERAGE_MIN * (double)(mean.to_ns - mean.from_ns))
        return err;
    /* Pipes that are active all the time do more than the peak where the clock is higher than the peak's. */
    const struct hec_device *device = &d->readings.device;
    const struct hec_part *part_of = hec_part_find(device->name);
    double peak_mhz = part_of ? hec_part_peak_mhz(part_of, device->cuda_major, device->cuda_minor) : NAN;
    double clock_mhz = d->readings.metric[HEC_GPU_SM_CLOCK].maximum;
    if (peak_mhz > 0 && clock_mhz > 0)
        d->loop_tensor = mean.sum / (double)mean.length_ns / 1000 * fmax(1, clock_mhz / peak_mhz);
    return 0;
}

/* Without steps: from the first to the last of what the devices' calls show, where they show it of all that are used. */
static struct hec_steady loop_by_calls(const struct hec_summary *s) {
    struct hec_steady loop = {.from_ns = INT64_MAX, .to_ns = INT64_MIN};
    for (int i = 0; i < s->device_count; i++) {
        const struct hec_ledger_device *steady = s->devices[i].steady;
        if (!s->devices[i].readings.used)
            continue;
        if (!steady || !s->devices[i].ledger || steady->window_ns >= s->devices[i].ledger->window_ns)
            return (struct hec_steady){0};
        loop.from_ns = steady->from_ns < loop.from_ns ? steady->from_ns : loop.from_ns;
        loop.to_ns = steady->to_ns > loop.to_ns ? steady->to_ns : loop.to_ns;
    }
    loop.known = loop.to_ns > loop.from_ns;
    return loop;
}

int hec_loop_build(const struct hec_pass *pass, struct hec_meter *meter, struct hec_summary *s, struct hec_why *why) {
    struct part part = {.steps = hec_step_survey_best(&pass->survey, &pass->tables), .count = HEC_RUN_PARTS};
    struct hec_steady steady = part.steps ? hec_steady_of(part.steps) : loop_by_calls(s);
    struct hec_loop *out = &s->loop;
    int err = 0;
    for (int i = 0; i < s->device_count; i++)
        s->devices[i].loop_tensor = NAN;
    *out = (struct hec_loop){.known = steady.known && steady.from_ns >= 0 && steady.to_ns <= meter->end_ns};
    if (!out->known)
        return 0;
    const int64_t edge[HEC_RUN_PARTS + 1] = {0, steady.from_ns, steady.to_ns, meter->end_ns};
    memcpy(part.edge, edge, sizeof edge);
    for (int i = 0; i < HEC_RUN_PARTS; i++)
        out->seconds[i] = (double)(edge[i + 1] - edge[i]) / HEC_NS_PER_S;
    out->steps = (int64_t)steady.steps + (part.steps ? part.steps->beyond : 0);
    for (int i = 0; i < s->unit_count; i++) {
        if (!part.steps) { /* how much of the work was done before nobody knows */
            s->units[i].loop_count = NAN;
            continue;
        }
        memset(part.units, 0, sizeof part.units);
        count_units(pass, &part, &s->units[i]);
        s->units[i].loop_count = part.units[HEC_RUN_LOOP];
    }
    int used = 0;
    for (int i = 0; i < s->device_count && !err; i++)
        if (s->devices[i].readings.used) {
            err = part_joules(meter, &s->devices[i], &part, out, why);
            err = err ? err : tensor_in_loop(meter, &s->devices[i], &part, why);
            used++;
        }
    for (int i = 0; i < HEC_RUN_PARTS && !used; i++)
        out->joules[i] = out->bound_joules[i] = NAN;
    set_up_line(s, out);
    return err;
}
