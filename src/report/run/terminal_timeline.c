#include "base/trace.h"
#include "report/format.h"
#include "report/run/terminal_device.h"
#include "report/words/reasons.h"
#include "report/words/timeline.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define KERNELS_SHOWN 3
#define KERNELS_SHOWN_ALL 10
#define ALIKE 0.1 /* ranks of one job make as many steps, but for those at its ends */
#define BAR_COLUMNS 64
#define LABEL_COLUMNS 13

typedef char text[HEC_FORMAT_SIZE];

/* Where the traced time went: each instant counts once, for the first that applies. */
struct shares {
    double compute, comm, copy, idle;
};

static struct shares shares_of(const struct hec_device_timeline *d) {
    double whole = d->traced_s > 0 ? d->traced_s : NAN;
    double comm = d->comm_s * (1 - (isfinite(d->comm_overlap) ? d->comm_overlap : 0));
    return (struct shares){
        .compute = d->compute_s / whole,
        .comm = comm / whole,
        .copy = fmax(0, d->non_compute_s - comm) / whole,
        .idle = d->idle_s / whole,
    };
}

/* ---- one device ---- */

static void put_bar(struct hec_page *page, const struct shares *s) {
    static const char *const blocks[] = {"\u2588", "\u2593", "\u2592", "\u00b7"}, *const ascii[] = {"#", "=", "-", "."};
    const double parts[] = {s->compute, s->comm, s->copy, s->idle};
    char bar[4 * BAR_COLUMNS + 1] = "";
    int width = page->columns - LABEL_COLUMNS < BAR_COLUMNS ? page->columns - LABEL_COLUMNS : BAR_COLUMNS, drawn = 0;
    double until = 0;
    for (int i = 0; i < 4; i++) {
        until += parts[i];
        int to = i == 3 ? width : (int)lround(until * width);
        for (; drawn < to && drawn < width; drawn++)
            strcat(bar, page->utf8 ? blocks[i] : ascii[i]);
    }
    hec_page_row(page, 4, "", HEC_TONE_PLAIN, "%s", bar);
}

static void put_hidden(struct hec_page *page, const struct hec_device_timeline *d) {
    text comm, copy;
    if (d->comm_s > 0 && d->copy_s > 0)
        hec_page_row(page, 4, "", HEC_TONE_DIM, "behind compute: %s of the communication, %s of the copies",
                     hec_format_share(comm, d->comm_overlap), hec_format_share(copy, d->copy_overlap));
    else if (d->comm_s > 0)
        hec_page_row(page, 4, "", HEC_TONE_DIM, "behind compute: %s of the communication",
                     hec_format_share(comm, d->comm_overlap));
    else if (d->copy_s > 0)
        hec_page_row(page, 4, "", HEC_TONE_DIM, "behind compute: %s of the copies",
                     hec_format_share(copy, d->copy_overlap));
}

static void put_counts(struct hec_page *page, const struct hec_device_timeline *d) {
    static const char *const names[] = {"kernel", "graph", "copy", "memset"};
    const int64_t counts[] = {d->kernels, d->graphs, d->copies, d->memsets};
    char line[256] = "";
    text count;
    for (int i = 0; i < 4; i++)
        if (counts[i])
            snprintf(line + strlen(line), sizeof line - strlen(line), "%s%.20s %s", line[0] ? ", " : "",
                     hec_format_count(count, (double)counts[i]),
                     counts[i] == 1 ? names[i] : (const char *[]){"kernels", "graphs", "copies", "memsets"}[i]);
    hec_page_row(page, 4, "", HEC_TONE_DIM, "%s in %d stream%s", line, d->streams, d->streams == 1 ? "" : "s");
}

static void put_waiting(struct hec_page *page, const struct hec_device_timeline *d) {
    text count, median, p99, longest, mean, deepest;
    if (d->gap.count)
        hec_page_row(page, 4, "gaps", HEC_TONE_PLAIN, "%s: median %s, p99 %s, longest %s",
                     hec_format_count(count, (double)d->gap.count), hec_format_seconds(median, d->gap.median),
                     hec_format_seconds(p99, d->gap.p99), hec_format_seconds(longest, d->gap.maximum));
    if (d->launch_delay.count)
        hec_page_row(page, 4, "launches", HEC_TONE_PLAIN, "start after %s (p99 %s); queue %s deep, at most %s",
                     hec_format_seconds(median, d->launch_delay.median), hec_format_seconds(p99, d->launch_delay.p99),
                     isfinite(d->queue_mean) ? (snprintf(mean, sizeof mean, "%.3g", d->queue_mean), mean) : "unknown",
                     hec_format_count(deepest, d->queue_max));
}

static void put_copies(struct hec_page *page, const struct hec_device_timeline *d) {
    static const char *const directions[HEC_COPY_DIRECTION_COUNT] = {"host to device", "device to host",
                                                                     "within the device", "between devices", "other"};
    static const char *const hosts[HEC_COPY_HOST_COUNT] = {", pageable", ", pinned", ""};
    const char *label = "copies";
    for (int i = 0; i < HEC_COPY_DIRECTION_COUNT; i++)
        for (int k = 0; k < HEC_COPY_HOST_COUNT; k++) {
            const struct hec_copy_total *total = &d->copied[i][k];
            text count, bytes, rate;
            double speed = hec_copy_rate(total);
            if (!total->count)
                continue;
            hec_page_row(page, 4, label, HEC_TONE_PLAIN, "%s%s: %s, %s%s%s", directions[i], hosts[k],
                         hec_format_count(count, (double)total->count), hec_format_bytes(bytes, total->bytes, ""),
                         isfinite(speed) ? " at " : "", isfinite(speed) ? hec_format_bytes(rate, speed, "/s") : "");
            label = "";
        }
}

void hec_terminal_device_timeline(struct hec_page *page, const struct hec_device_timeline *d) {
    text whole, busy, compute, comm, copy;
    if (!d)
        return;
    struct shares s = shares_of(d);
    if (d->traced_s > 0) {
        char others[128] = "";
        if (s.comm > 0)
            snprintf(others, sizeof others, ", comm %.10s", hec_format_share(comm, s.comm));
        if (s.copy > 0)
            snprintf(others + strlen(others), sizeof others - strlen(others), ", copies %.10s",
                     hec_format_share(copy, s.copy));
        hec_page_row(page, 4, "timeline", HEC_TONE_PLAIN, "busy %s of %s%s: compute %s%s",
                     hec_format_share(busy, d->busy_s / d->traced_s), hec_format_seconds(whole, d->traced_s),
                     d->traced_s < 0.999 * d->window_s ? " traced" : "", hec_format_share(compute, s.compute), others);
        if (page->all) {
            put_bar(page, &s);
            put_hidden(page, d);
        }
    } else {
        hec_page_row(page, 4, "timeline", HEC_TONE_PLAIN, "next to no activity");
    }
    if (!page->all)
        return;
    put_counts(page, d);
    put_waiting(page, d);
    put_copies(page, d);
}

/* ---- kernels ---- */

static char *whole_share(char cell[HEC_FORMAT_SIZE], double share) {
    snprintf(cell, HEC_FORMAT_SIZE, isfinite(share) ? "%.0f %%" : "-", 100 * share);
    return cell;
}

#define HEC_KERNEL_COLUMN(id, head, width, markdown, text)                                                             \
    static char *kernel_##id(char cell[HEC_FORMAT_SIZE], const struct hec_kernel_row *k) {                             \
        return text;                                                                                                   \
    }
#include "report/run/kernel.def"

const struct hec_kernel_column hec_kernel_columns[] = {
#define HEC_KERNEL_COLUMN(id, head, width, markdown, text) {head, width, markdown, kernel_##id},
#include "report/run/kernel.def"
    {NULL, 0, false, NULL},
};

/* A row, or the heads where k is NULL; its name is shortened to the room that is left. */
static void put_kernel(struct hec_page *page, const struct hec_kernel_row *k) {
    text label, cell;
    char line[512] = "", name[600];
    for (const struct hec_kernel_column *column = hec_kernel_columns; column->head; column++) {
        const char *shown = k ? column->text(cell, k) : column->head;
        if (column == hec_kernel_columns)
            snprintf(label, sizeof label, "%*s", column->width, shown);
        else
            snprintf(line + strlen(line), sizeof line - strlen(line), "%*s ", column->width, shown);
    }
    int room = page->columns - LABEL_COLUMNS - (int)strlen(line) - 1;
    hec_page_row(page, 2, label, k ? HEC_TONE_PLAIN : HEC_TONE_DIM, "%s %s", line,
                 k ? hec_kernel_short(name, sizeof name, k->name, room < 8 ? 8 : room) : "name");
}

void hec_terminal_kernels(struct hec_page *page, const struct hec_summary *summary, uint64_t devices) {
    for (int d = 0; d < summary->device_count; d++) {
        const struct hec_device_timeline *t = summary->devices[d].timeline;
        text gpu;
        if (!t || !t->row_count || !(devices & hec_device_bit(t->device)))
            continue;
        hec_page_blank(page);
        hec_page_row(page, 0, "Kernels", HEC_TONE_BOLD, "of %s, those that took longest",
                     hec_format_gpu(gpu, t->device));
        put_kernel(page, NULL);
        int most = page->all ? KERNELS_SHOWN_ALL : KERNELS_SHOWN;
        for (int i = 0; i < t->row_count && i < most; i++)
            put_kernel(page, &t->rows[i]);
        if (t->row_count > most)
            hec_page_row(page, 2, "", HEC_TONE_DIM, "and %d more (--json shows them)", t->row_count - most);
    }
}

/* ---- steps ---- */

static void add_words(char *line, size_t size, const char *words, const char *value, const char *after) {
    snprintf(line + strlen(line), size - strlen(line), "%s%s%s%s", line[0] ? "; " : "", words, value, after);
}

static const char *confidence_of(text out, const struct hec_step_summary *s) {
    if (s->confidence < 1)
        snprintf(out, HEC_FORMAT_SIZE, " (confidence %.2f)", s->confidence);
    else
        out[0] = '\0';
    return out;
}

static void put_steps(struct hec_page *page, const struct hec_summary *run, const struct hec_step_summary *s,
                      const char *label, const char *of) {
    char more[512] = "", steps[HEC_STEPS_WORDS];
    text value, count, median, p99, confidence;
    hec_page_row(page, 0, label, HEC_TONE_PLAIN, "%s%s %s%s: median %s, p99 %s", of,
                 hec_format_count(count, (double)s->count), hec_steps_words(steps, run, s->source),
                 confidence_of(confidence, s), hec_format_seconds(median, s->duration.median),
                 hec_format_seconds(p99, s->duration.p99));
    if (isfinite(s->samples_per_step)) {
        char unit[160];
        snprintf(unit, sizeof unit, " %s%s each%s", s->unit[0] ? s->unit : "unit", s->samples_per_step == 1 ? "" : "s",
                 hec_samples_words(run, s->source));
        add_words(more, sizeof more, "", hec_format_count(value, s->samples_per_step), unit);
    }
    if (isfinite(s->busy_share))
        add_words(more, sizeof more, "busy ", hec_format_share(value, s->busy_share), "");
    if (isfinite(s->data_s))
        add_words(more, sizeof more, "loader ", hec_format_share(value, hec_step_data_share(s)), "");
    if (s->examined < s->count)
        add_words(more, sizeof more, "all of the first ", hec_format_count(value, (double)s->examined), "");
    if (s->values > 1) {
        snprintf(value, sizeof value, "%.4g to %.4g", s->value_first + 0.0, s->value_last + 0.0); /* no -0 */
        add_words(more, sizeof more, "loss ", value, "");
    }
    if (more[0])
        hec_page_row(page, 0, "", HEC_TONE_PLAIN, "%s", more);
}

static void put_parts(struct hec_page *page, const struct hec_summary *s) {
    char line[256] = "host: ";
    text mean;
    int shown = 0;
    for (int i = 0; i < HEC_STEP_PARTS; i++)
        if (s->step_part[i].count)
            snprintf(line + strlen(line), sizeof line - strlen(line), "%s%s %s", shown++ ? ", " : "",
                     hec_step_part_words(i),
                     hec_format_seconds(mean, s->step_part[i].seconds / (double)s->step_part[i].count));
    if (shown)
        hec_page_row(page, 0, "", HEC_TONE_PLAIN, "%s a call (the device works on it meanwhile or later)", line);
}

/* Ranks of one job do alike; what differs is another program. */
static bool alike(const struct hec_step_summary *a, const struct hec_step_summary *b) {
    double more = fmax((double)a->count, (double)b->count), less = fmin((double)a->count, (double)b->count);
    return a->source == b->source && strcmp(a->unit, b->unit) == 0 && more - less <= fmax(2, ALIKE * more);
}

void hec_terminal_steps(struct hec_page *page, const struct hec_summary *summary) {
    const struct hec_step_summary *run = &summary->steps, *others[HEC_DEVICE_MAX];
    int count = 0;
    bool any = run->source != HEC_STEP_NONE && run->count;
    for (int i = 0; i < summary->device_count && any; i++) {
        const struct hec_step_summary *own = hec_steps_of(summary, &summary->devices[i]);
        bool known = !summary->devices[i].readings.used || !own->count || own == run || alike(own, run);
        for (int k = 0; k < count; k++)
            known |= others[k] && own->pid == others[k]->pid;
        others[count++] = known ? NULL : own;
    }
    if (!any)
        return;
    if (page->all)
        hec_page_blank(page);
    put_steps(page, summary, run, "Steps", "");
    if (page->all)
        put_parts(page, summary);
    for (int i = 0; i < count; i++) {
        char gpu[HEC_FORMAT_SIZE], of[HEC_FORMAT_SIZE + 2];
        snprintf(of, sizeof of, "%s: ", hec_format_gpu(gpu, summary->devices[i].readings.device.index));
        if (others[i])
            put_steps(page, summary, others[i], "", of);
    }
}

/* ---- trace ---- */

static void put_overhead(struct hec_page *page, const struct hec_trace_cost *t, const char *label) {
    text overhead, low, high;
    if (t->overhead_unknown)
        hec_page_row(page, 0, label, HEC_TONE_DIM, "slowdown unknown: no steps were timed before CUPTI was on");
    if (!isfinite(t->overhead))
        return;
    if (t->overhead_measured)
        hec_page_row(page, 0, label, HEC_TONE_DIM, "slowdown %s (%s to %s, measured)",
                     hec_format_share(overhead, t->overhead), hec_format_share(low, t->overhead_low),
                     hec_format_share(high, t->overhead_high));
    else
        hec_page_row(page, 0, label, HEC_TONE_DIM, "slowdown about %s (%s%s%sestimated)",
                     hec_format_share(overhead, t->overhead), isfinite(t->overhead_high) ? "at most " : "",
                     isfinite(t->overhead_high) ? hec_format_share(high, t->overhead_high) : "",
                     isfinite(t->overhead_high) ? ", " : "");
}

void hec_terminal_trace(struct hec_page *page, const struct hec_summary *summary) {
    const struct hec_trace_cost *t = &summary->trace;
    text share, records, dropped, lost, bad, held;
    if (!t->processes) {
        if (hec_summary_traced(summary) && t->why.id)
            hec_page_row(page, 0, "Trace", HEC_TONE_DIM, "%s", HEC_SAY(&t->why));
        return;
    }
    bool cost = (isfinite(t->overhead) || t->overhead_unknown) && !page->all; /* then it says enough */
    if (!cost && (t->records || isfinite(t->coverage)))
        hec_page_row(page, 0, "Trace", HEC_TONE_DIM, "%s: %s of the time, %s records, %d process%s",
                     hec_trace_mode_name(t->mode), hec_format_share(share, t->coverage),
                     hec_format_count(records, (double)t->records), t->processes, t->processes == 1 ? "" : "es");
    else if (!cost)
        hec_page_row(page, 0, "Trace", HEC_TONE_DIM, "none%s%s", t->why.id ? ": " : "", HEC_SAY(&t->why));
    put_overhead(page, t, cost ? "Trace" : "");
    if (t->dropped || t->lost || t->bad)
        hec_page_row(page, 0, "", HEC_TONE_WARN, "missing: %s dropped by CUPTI, %s lost on the way, %s made no sense",
                     hec_format_count(dropped, (double)t->dropped), hec_format_count(lost, (double)t->lost),
                     hec_format_count(bad, (double)t->bad));
    if (t->rest_s > 0)
        hec_page_row(page, 0, "", HEC_TONE_DIM,
                     "calls were not recorded for %s, two seconds of four: recording so many costs a little",
                     hec_format_seconds(held, t->rest_s));
    if (t->holder[0])
        hec_page_row(page, 0, "", HEC_TONE_WARN, "stood down for %s, which used CUPTI for %s", t->holder,
                     hec_format_seconds(held, t->holder_s));
    bool traced = hec_summary_traced(summary);
    if (t->why.id && (traced || (page->all && (t->records || isfinite(t->coverage))))) /* else it is said above */
        hec_page_row(page, 0, "", traced ? HEC_TONE_WARN : HEC_TONE_DIM, "%s", HEC_SAY(&t->why));
}
