#include "report/run/terminal_device.h"

#include "report/words/findings.h"
#include "report/words/reasons.h"
#include "report/words/summary.h"
#include "report/words/timeline.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef char text[HEC_FORMAT_SIZE];

double hec_terminal_watts(const struct hec_device_summary *d) {
    return d->energy.valid && d->energy.window_s > 0 ? d->energy.joules / d->energy.window_s : d->power_w.mean;
}

static void put_device_energy(struct hec_page *page, const struct hec_device_summary *d, bool ledger) {
    const struct hec_energy *e = &d->energy;
    text joules, coverage, apart, share;
    const char *method = e->method == HEC_ENERGY_COUNTER ? "the counter" : "the power samples alone";
    if (e->valid && page->all) /* else the run's says it */
        hec_page_row(page, 4, "energy", HEC_TONE_PLAIN, "%s by %s%s",
                     hec_format_bounded(joules, e->joules, e->bound_joules, "J", page->utf8), method,
                     e->simulated ? " (simulated)" : "");
    else if (!e->valid)
        hec_page_row(page, 4, "energy", HEC_TONE_BAD, "invalid: %s", HEC_SAY(&e->why));
    if (e->method == HEC_ENERGY_NONE)
        return;
    char notes[256] = "";
    if (isfinite(e->disagreement))
        snprintf(notes, sizeof notes, "; by the power samples %+.1f %%",
                 round(1000 * e->disagreement) / 10 + 0.0); /* no -0 */
    if (e->gaps)
        snprintf(notes + strlen(notes), sizeof notes - strlen(notes), "; %d gap%s, %.2g s", e->gaps,
                 e->gaps == 1 ? "" : "s", e->gap_s);
    if (e->resets)
        snprintf(notes + strlen(notes), sizeof notes - strlen(notes), "; %d reset%s of the counter", e->resets,
                 e->resets == 1 ? "" : "s");
    if (page->all || e->gaps || e->resets)
        hec_page_row(page, 4, "", HEC_TONE_DIM, "readings cover %s%s", hec_format_share(coverage, e->coverage), notes);
    if (ledger) /* it shows what the energy went to, and better */
        return;
    if (isfinite(e->work_joules)) {
        hec_page_row(page, 4, page->all ? "" : "energy", HEC_TONE_PLAIN,
                     "work %s, idle with a context %s (%s; %.1f s at %.0f W), idle %s%s",
                     hec_format_si(joules, e->work_joules, 3, "J"),
                     hec_format_si(apart, e->idle_context_joules, 3, "J"),
                     hec_format_share(share, e->idle_context_joules / e->joules), e->idle_context_s,
                     isfinite(e->idle_context_watts) ? e->idle_context_watts : 0,
                     hec_format_si(coverage, e->idle_joules, 3, "J"),
                     e->idle_source.id == HEC_REASON_LEVEL_LOWEST || e->idle_source.id == HEC_REASON_LEVEL_UTILISATION
                         ? "; estimated"
                         : "");
    } else if (isfinite(e->idle_unknown_max_joules)) {
        hec_page_row(page, 4, page->all ? "" : "energy", HEC_TONE_PLAIN, "idle with a context: at most %s (%s)",
                     hec_format_si(joules, e->idle_unknown_max_joules, 2, "J"), HEC_SAY(&e->idle_source));
    }
}

struct column {
    const char *heading;
    int metric; /* of the device */
    int width;
};

/* Two lines, headings and figures, of the columns that have one; false: none has. */
static bool put_columns(struct hec_page *page, const struct hec_device_summary *d, const char *label,
                        const struct column *columns, int count, bool rates) {
    char headings[256] = "", figures[256] = "";
    text value;
    for (int i = 0; i < count; i++) {
        double mean = d->metric[columns[i].metric].mean;
        if (!isfinite(mean))
            continue;
        snprintf(headings + strlen(headings), sizeof headings - strlen(headings), "%*s", columns[i].width,
                 columns[i].heading);
        snprintf(figures + strlen(figures), sizeof figures - strlen(figures), "%*s", columns[i].width,
                 rates ? hec_format_bytes(value, mean, "/s") : hec_format_share(value, mean));
    }
    if (!headings[0])
        return false;
    hec_page_row(page, 4, label, HEC_TONE_DIM, "%s", headings);
    hec_page_row(page, 4, "", HEC_TONE_PLAIN, "%s", figures);
    return true;
}

static void put_use(struct hec_page *page, const struct hec_device_summary *d) {
    static const struct column shares[] = {
        {"driver utilisation", HEC_GPU_UTIL, 18}, {"SM active", HEC_GPM_SM_ACTIVE, 11},
        {"occupancy", HEC_GPM_SM_OCCUPANCY, 11},  {"tensor", HEC_GPM_TENSOR_ACTIVE, 9},
        {"DRAM", HEC_GPM_DRAM_ACTIVE, 9},         {"memory", HEC_GPU_MEM_UTIL, 9}};
    static const struct column rates[] = {{"PCIe in", HEC_GPM_PCIE_RX, 18},
                                          {"PCIe out", HEC_GPM_PCIE_TX, 12},
                                          {"NVLink in", HEC_GPM_NVLINK_RX, 12},
                                          {"NVLink out", HEC_GPM_NVLINK_TX, 12}};
    bool any = put_columns(page, d, "use", shares, isfinite(d->metric[HEC_GPM_DRAM_ACTIVE].mean) ? 5 : 6, false);
    if (page->all || !any)
        any |= put_columns(page, d, any ? "" : "use", rates, 4, true);
    if (!any)
        hec_page_row(page, 4, "use", HEC_TONE_PLAIN, "not recorded");
}

#define MFU_LEAST 0.01 /* below, other pipes may do the products */

static void put_mfu(struct hec_page *page, const struct hec_summary *s, const struct hec_device_diagnosis *device) {
    text most, share, step;
    char words[HEC_FLOPS_WORDS];
    if (isfinite(device->mfu))
        hec_page_row(page, 4, "MFU", HEC_TONE_PLAIN, "at least %s of the dense peak, over the loop: %s a step%s",
                     hec_format_share(share, device->mfu), hec_format_si(step, s->flops.all, 3, "FLOP"),
                     page->all ? hec_flops_words(words, &s->flops) : "");
    else if (page->all && s->flops.why[0])
        hec_page_row(page, 4, "MFU", HEC_TONE_PLAIN, "the model's FLOPs are not counted: %s", s->flops.why);
    if (page->all && device->loop_tensor >= MFU_LEAST)
        hec_page_row(
            page, 4, "MFU", HEC_TONE_PLAIN,
            "tensor pipes: at most %s of their dense peak in the loop (active so much of it; what is recomputed or "
            "padded counts, products on other pipes do not)",
            hec_format_share(most, device->loop_tensor));
}

static void put_parts(struct hec_page *page, const struct hec_device_diagnosis *device) {
    const struct hec_device_parts *parts = &device->parts;
    char line[320] = "";
    text value;
    for (int i = 0; i <= HEC_STEP_PARTS && parts->steps > 0; i++) {
        const struct hec_device_part *part = &parts->part[i];
        size_t length = strlen(line);
        if (!(part->seconds > 0))
            continue;
        snprintf(line + length, sizeof line - length, "%s%s %s", length ? ", " : "", hec_step_part_words(i),
                 hec_format_seconds(value, part->seconds / parts->steps));
        length = strlen(line);
        if (hec_part_joules_known(part))
            snprintf(line + length, sizeof line - length, " %s", hec_format_si(value, part->step_joules, 2, "J"));
    }
    if (line[0])
        hec_page_row(page, 4, "of a step", HEC_TONE_PLAIN, "%s%s", line,
                     parts->glimpse ? " (on the device, as of the glimpse)" : "");
}

static void put_memory(struct hec_page *page, const struct hec_device_summary *d) {
    text peak, left;
    if (isfinite(d->memory_left_bytes))
        hec_page_row(page, 4, "memory", HEC_TONE_PLAIN, "%s in use at the peak, %s left",
                     hec_format_bytes(peak, d->memory_peak_bytes, ""),
                     hec_format_bytes(left, d->memory_left_bytes, ""));
}

static void put_power(struct hec_page *page, const struct hec_device_summary *d) {
    text share;
    if (!d->power_w.count) {
        hec_page_row(page, 4, "power", HEC_TONE_PLAIN, "not recorded");
        return;
    }
    if (isfinite(d->power_limit_w))
        hec_page_row(page, 4, "power", HEC_TONE_PLAIN, "mean %.0f W, median %.0f W, max %.0f W, limit %.0f W",
                     d->power_w.mean, d->power_w.median, d->power_w.maximum, d->power_limit_w);
    else
        hec_page_row(page, 4, "power", HEC_TONE_PLAIN, "mean %.0f W, median %.0f W, max %.0f W, limit unknown",
                     d->power_w.mean, d->power_w.median, d->power_w.maximum);
    for (int i = 0; i < HEC_THROTTLE_COUNT; i++)
        if (d->throttled_share[i] >= 0.01)
            hec_page_row(page, 4, "", HEC_TONE_PLAIN, "clocks held down by %s in %s of the readings",
                         hec_throttle_info((enum hec_throttle)i)->words,
                         hec_format_share(share, d->throttled_share[i]));
}

static void put_others(struct hec_page *page, const struct hec_device_summary *d) {
    text engine, seen;
    char who[64] = "shared with a process that the driver does not list";
    if (d->shared_with)
        snprintf(who, sizeof who, "shared with %d other process%s", d->shared_with, d->shared_with == 1 ? "" : "es");
    if (d->others == HEC_OTHERS_BUSY)
        hec_page_row(
            page, 4, "", HEC_TONE_WARN,
            "%s, at work: while CUPTI looked the engine was active %s of the time, with the command's work %s; "
            "energy and counters are the device's, not the command's alone",
            who, hec_format_share(engine, d->others_engine), hec_format_share(seen, d->others_seen));
    else if (d->shared_with)
        hec_page_row(page, 4, "", HEC_TONE_WARN, "%s: the energy is the device's, not the command's alone%s", who,
                     d->others == HEC_OTHERS_MAYBE ? ", and so may be the counters" : "");
}

void hec_terminal_device(struct hec_page *page, const struct hec_summary *s,
                         const struct hec_device_diagnosis *device) {
    const struct hec_device_summary *d = &device->readings;
    text gpu;
    hec_page_blank(page);
    hec_page_row(page, 0, hec_format_gpu(gpu, d->device.index), HEC_TONE_BOLD, "%s",
                 d->device.name[0] ? d->device.name : "(no name)");
    if (s->imported[0]) { /* time is all that there is */
        hec_terminal_device_timeline(page, device->timeline);
        hec_terminal_classes(page, device);
        return;
    }
    if (page->all)
        hec_page_row(page, 4, "used", HEC_TONE_PLAIN, "%s", HEC_SAY(&d->used_why));
    put_others(page, d);
    if (d->device.mig_enabled == 1)
        hec_page_row(
            page, 4, "", HEC_TONE_WARN,
            "divided (MIG): the energy is the whole board's, no matter how small the part that the command used");
    put_device_energy(page, d, device->ledger && isfinite(device->ledger->joules));
    put_power(page, d);
    put_use(page, d);
    put_mfu(page, s, device);
    put_parts(page, device);
    put_memory(page, d);
    hec_terminal_device_timeline(page, device->timeline);
    hec_terminal_classes(page, device);
}

static bool unused_alike(const struct hec_device_summary *a, const struct hec_device_summary *b) {
    return !a->used && !b->used && strcmp(HEC_SAY(&a->used_why), HEC_SAY(&b->used_why)) == 0 &&
           (a->shared_with > 0) == (b->shared_with > 0) && a->energy.valid == b->energy.valid;
}

void hec_terminal_unused(struct hec_page *page, const struct hec_summary *s) {
    for (int i = 0; i < s->device_count; i++) {
        const struct hec_device_summary *d = &s->devices[i].readings;
        text gpus, joules;
        uint64_t devices = 0;
        double sum = 0;
        bool before = d->used;
        for (int k = 0; k < s->device_count; k++) {
            if (!unused_alike(d, &s->devices[k].readings))
                continue;
            before |= k < i;
            devices |= hec_device_bit(s->devices[k].readings.device.index);
            sum += s->devices[k].readings.energy.joules;
        }
        if (before)
            continue;
        bool several = devices & (devices - 1);
        (page->all ? hec_page_row : hec_page_line)(page, 0, hec_devices_word(gpus, devices), HEC_TONE_DIM,
                                                   "not charged (%s%s%s): %s",
                                                   d->energy.valid     ? hec_format_si(joules, sum, 3, "J")
                                                   : d->device.name[0] ? d->device.name
                                                                       : "no name",
                                                   several && d->energy.valid ? " in all" : "",
                                                   d->shared_with ? ", in use by others" : "", HEC_SAY(&d->used_why));
    }
}
