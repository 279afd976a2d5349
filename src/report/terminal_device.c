#include "report/terminal_device.h"

#include "report/format.h"
#include "report/terminal_findings.h"
#include "report/terminal_timeline.h"
#include "report/timeline_words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define TOGETHER_MOST 3 /* on one line */
#define IDLE_SHOWN 0.05 /* idle with a context is worth a word in the brief report from this share of the energy */

typedef char text[HEC_FORMAT_SIZE];

double hec_terminal_watts(const struct hec_device_summary *d) {
    return d->energy.valid && d->energy.window_s > 0 ? d->energy.joules / d->energy.window_s : d->power_w.mean;
}

static void put_device_energy(struct hec_page *page, const struct hec_device_summary *d, bool ledger) {
    const struct hec_energy *e = &d->energy;
    text joules, coverage, apart, share;
    const char *method = e->method == HEC_ENERGY_COUNTER ? "the counter" : "the power samples alone";
    if (e->valid)
        hec_page_row(page, 4, "energy", HEC_TONE_PLAIN, "%s by %s%s",
                     hec_format_bounded(joules, e->joules, e->bound_joules, "J", page->utf8), method,
                     e->simulated ? " (simulated)" : "");
    else
        hec_page_row(page, 4, "energy", HEC_TONE_BAD, "invalid: %s", e->why);
    if (e->method == HEC_ENERGY_NONE)
        return;
    char notes[256] = "";
    if (isfinite(e->disagreement))
        snprintf(notes, sizeof notes, "; the power samples say %+.1f %%", 100 * e->disagreement);
    if (e->gaps)
        snprintf(notes + strlen(notes), sizeof notes - strlen(notes), "; %d gap%s, %.2g s", e->gaps,
                 e->gaps == 1 ? "" : "s", e->gap_s);
    if (e->resets)
        snprintf(notes + strlen(notes), sizeof notes - strlen(notes), "; %d reset%s of the counter", e->resets,
                 e->resets == 1 ? "" : "s");
    hec_page_row(page, 4, "", HEC_TONE_DIM, "readings cover %s%s", hec_format_share(coverage, e->coverage), notes);
    if (ledger) /* it shows what the energy went to, and better */
        return;
    if (isfinite(e->work_joules)) {
        hec_page_row(page, 4, "", HEC_TONE_PLAIN, "work %s, idle with a context %s (%s; %.1f s at %.0f W), idle %s%s",
                     hec_format_si(joules, e->work_joules, 3, "J"),
                     hec_format_si(apart, e->idle_context_joules, 3, "J"),
                     hec_format_share(share, e->idle_context_joules / e->joules), e->idle_context_s,
                     isfinite(e->idle_context_watts) ? e->idle_context_watts : 0,
                     hec_format_si(coverage, e->idle_joules, 3, "J"),
                     strncmp(e->idle_source, "estimated", 9) == 0 ? "; estimated" : "");
    } else if (isfinite(e->idle_unknown_max_joules)) {
        hec_page_row(page, 4, "", HEC_TONE_PLAIN, "idle with a context: at most %s (%s)",
                     hec_format_si(joules, e->idle_unknown_max_joules, 2, "J"), e->idle_source);
    }
}

static void add_share(char *line, size_t size, const char *name, double share) {
    text value;
    if (isfinite(share))
        snprintf(line + strlen(line), size - strlen(line), "%s%s %s", line[0] ? "   " : "", name,
                 hec_format_share(value, share));
}

static void add_rate(char *line, size_t size, const char *name, double bytes) {
    text value;
    if (isfinite(bytes))
        snprintf(line + strlen(line), size - strlen(line), "%s%s %s", line[0] ? "   " : "", name,
                 hec_format_bytes(value, bytes, "/s"));
}

static void put_use(struct hec_page *page, const struct hec_device_summary *d) {
    char shares[256] = "", rates[256] = "";
    add_share(shares, sizeof shares, "GPU", d->metric[HEC_GPU_UTIL].mean);
    add_share(shares, sizeof shares, "SM", d->metric[HEC_GPM_SM_ACTIVE].mean);
    add_share(shares, sizeof shares, "occupancy", d->metric[HEC_GPM_SM_OCCUPANCY].mean);
    add_share(shares, sizeof shares, "tensor", d->metric[HEC_GPM_TENSOR_ACTIVE].mean);
    add_share(shares, sizeof shares, "DRAM", d->metric[HEC_GPM_DRAM_ACTIVE].mean);
    if (!isfinite(d->metric[HEC_GPM_DRAM_ACTIVE].mean))
        add_share(shares, sizeof shares, "memory", d->metric[HEC_GPU_MEM_UTIL].mean);
    add_rate(rates, sizeof rates, "PCIe in", d->metric[HEC_GPM_PCIE_RX].mean);
    add_rate(rates, sizeof rates, "out", d->metric[HEC_GPM_PCIE_TX].mean);
    add_rate(rates, sizeof rates, "NVLink in", d->metric[HEC_GPM_NVLINK_RX].mean);
    add_rate(rates, sizeof rates, "out", d->metric[HEC_GPM_NVLINK_TX].mean);
    hec_page_row(page, 4, "use", HEC_TONE_PLAIN, "%s", shares[0] ? shares : "not recorded");
    if (rates[0])
        hec_page_row(page, 4, "", HEC_TONE_PLAIN, "%s", rates);
}

static void put_power(struct hec_page *page, const struct hec_device_summary *d) {
    static const char *const names[HEC_THROTTLE_COUNT] = {"the power limit", "heat", "the hardware", "other settings"};
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
            hec_page_row(page, 4, "", HEC_TONE_PLAIN, "clocks held down by %s in %s of the readings", names[i],
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

void hec_terminal_device(struct hec_page *page, const struct hec_summary *s, const struct hec_device_summary *d) {
    text gpu;
    hec_page_blank(page);
    hec_page_row(page, 0, hec_format_gpu(gpu, d->device.index), HEC_TONE_BOLD, "%s",
                 d->device.name[0] ? d->device.name : "(no name)");
    if (s->imported[0]) { /* time is all that there is */
        hec_terminal_device_timeline(page, &s->timeline, d->device.index);
        hec_terminal_classes(page, &s->diagnosis, d->device.index);
        return;
    }
    hec_page_row(page, 4, "used", HEC_TONE_PLAIN, "%s", d->used_why);
    put_others(page, d);
    if (d->device.mig_enabled == 1)
        hec_page_row(
            page, 4, "", HEC_TONE_WARN,
            "divided (MIG): the energy is the whole board's, no matter how small the part that the command used");
    const struct hec_ledger_device *ledger = hec_diagnosis_of(&s->diagnosis, d->device.index, NULL);
    put_device_energy(page, d, ledger && isfinite(ledger->joules));
    put_power(page, d);
    put_use(page, d);
    hec_terminal_device_timeline(page, &s->timeline, d->device.index);
    hec_terminal_classes(page, &s->diagnosis, d->device.index);
}

void hec_terminal_unused(struct hec_page *page, const struct hec_summary *s) {
    for (int i = 0; i < s->device_count; i++) {
        const struct hec_device_summary *d = &s->devices[i];
        text gpu, joules;
        if (d->used)
            continue;
        const char *name = d->device.name[0] ? d->device.name : "no name";
        hec_page_row(page, 0, hec_format_gpu(gpu, d->device.index), HEC_TONE_DIM, "not charged (%s%s): %s",
                     d->energy.valid ? hec_format_si(joules, d->energy.joules, 3, "J") : name,
                     d->shared_with ? ", in use by others" : "", d->used_why);
    }
}

void hec_terminal_brief_together(struct hec_page *page, const struct hec_summary *s) {
    char row[256] = "";
    int shown = 0, used = 0;
    for (int i = 0; i < s->device_count; i++) {
        const struct hec_device_summary *d = &s->devices[i];
        const struct hec_device_timeline *t = hec_timeline_of(&s->timeline, d->device.index);
        text watts, share, gpu;
        used += d->used;
        if (!d->used || shown == TOGETHER_MOST)
            continue;
        size_t length = strlen(row);
        const char *name = hec_format_gpu(gpu, d->device.index);
        snprintf(row + length, sizeof row - length, "%s%s: %s%s%s", shown++ ? "; " : "",
                 strncmp(name, "GPU ", 4) == 0 ? name + 4 : name, /* the row is named "GPUs" */
                 hec_format_si(watts, hec_terminal_watts(d), 3, "W"), t && t->traced_s > 0 ? ", busy " : "",
                 t && t->traced_s > 0 ? hec_format_share(share, t->busy_s / t->traced_s) : "");
    }
    if (used > shown)
        snprintf(row + strlen(row), sizeof row - strlen(row), "; and %d more", used - shown);
    hec_page_line(page, 2, "GPUs", HEC_TONE_PLAIN, "%s", row);
}

void hec_terminal_brief_device(struct hec_page *page, const struct hec_summary *s, const struct hec_device_summary *d) {
    const struct hec_device_timeline *t = hec_timeline_of(&s->timeline, d->device.index);
    char idle[64] = "";
    text gpu, watts, share, part;
    if (d->energy.idle_context_joules >= IDLE_SHOWN * d->energy.joules)
        snprintf(idle, sizeof idle, "; %.8s of the energy while idle",
                 hec_format_share(share, d->energy.idle_context_joules / d->energy.joules));
    const char *what = t && t->traced_s > 0 ? ": busy " : ": engine active ";
    double busy = t && t->traced_s > 0 ? t->busy_s / t->traced_s : d->activity.engine;
    hec_page_row(page, 2, hec_format_gpu(gpu, d->device.index), HEC_TONE_PLAIN, "%s%s%s%s",
                 hec_format_si(watts, hec_terminal_watts(d), 3, "W"), isfinite(busy) ? what : "",
                 isfinite(busy) ? hec_format_share(part, busy) : "", idle);
}
