/* Several devices in the report for people: a row each in one table, and which of them differ from the others. */
#include "diagnose/states/ledger.h"
#include "report/words/findings.h"
#include "report/format.h"
#include "report/run/terminal_device.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SHARE_APART 0.05 /* of the run in one state: more is a difference */
#define WATTS_APART 0.10 /* of the mean power */
#define STATE_LEAST 0.01 /* a state with less on every device has no column */
#define ROWS_ALL 8       /* of more devices than a node has few have a row: */
#define ROWS_FEW 8       /* the typical one and those that differ */
#define CHAPTERS 3       /* the typical device, and of those that differ */
#define LABEL_COLUMNS 13

typedef char text[HEC_FORMAT_SIZE];

static double share_of(const struct hec_device_diagnosis *d, int state) {
    const struct hec_ledger_device *l = d->ledger;
    return l && l->window_ns > 0 ? (double)l->rows[state].ns / (double)l->window_ns : NAN;
}

double hec_terminal_busy(const struct hec_device_diagnosis *d) {
    double busy = 0;
    for (int i = 0; i < HEC_STATE_COUNT; i++)
        busy += hec_state_idle((enum hec_state)i) ? 0 : share_of(d, i);
    return busy;
}

/* ---- what differs ---- */

struct apart {
    double most; /* 1: at the limit of what counts as a difference */
    int state;   /* -1: power */
};

static struct apart apart(const struct hec_device_diagnosis *a, const struct hec_device_diagnosis *b) {
    double wa = hec_terminal_watts(&a->readings), wb = hec_terminal_watts(&b->readings);
    struct apart out = {.most = fabs(wa - wb) / (WATTS_APART * fmax(wa, wb)), .state = -1};
    if (!isfinite(out.most))
        out.most = isfinite(wa) != isfinite(wb) ? INFINITY : 0;
    for (int i = 0; i < HEC_STATE_COUNT; i++) {
        double by = fabs(share_of(a, i) - share_of(b, i)) / SHARE_APART;
        if (by > out.most)
            out = (struct apart){by, i};
    }
    return out;
}

/* The device that is least apart from all others. */
static const struct hec_device_diagnosis *typical(const struct hec_summary *s) {
    const struct hec_device_diagnosis *best = NULL;
    double least = INFINITY;
    for (int i = 0; i < s->device_count; i++) {
        double sum = 0;
        for (int k = 0; k < s->device_count; k++)
            if (s->devices[i].readings.used && s->devices[k].readings.used && k != i)
                sum += fmin(apart(&s->devices[i], &s->devices[k]).most, 1e6);
        if (s->devices[i].readings.used && (!best || sum < least)) {
            best = &s->devices[i];
            least = sum;
        }
    }
    return best;
}

uint64_t hec_terminal_chapters(const struct hec_summary *s, bool all) {
    const struct hec_device_diagnosis *first = typical(s);
    uint64_t out = first ? hec_device_bit(first->readings.device.index) : 0;
    int count = 1;
    for (int i = 0; i < s->device_count; i++) {
        const struct hec_device_diagnosis *d = &s->devices[i];
        if (!d->readings.used || d == first || !(all || (count < CHAPTERS && apart(d, first).most > 1)))
            continue;
        out |= hec_device_bit(d->readings.device.index);
        count++;
    }
    return out;
}

uint64_t hec_terminal_gpu_rows(const struct hec_summary *s, bool all) {
    const struct hec_device_diagnosis *first = typical(s);
    uint64_t out = 0, few = first ? hec_device_bit(first->readings.device.index) : 0;
    for (int i = 0; i < s->device_count; i++) {
        const struct hec_device_diagnosis *d = &s->devices[i];
        uint64_t bit = d->readings.used ? hec_device_bit(d->readings.device.index) : 0;
        out |= bit;
        if (bit && __builtin_popcountll(few) < ROWS_FEW && apart(d, first).most > 1)
            few |= bit;
    }
    return all || __builtin_popcountll(out) <= ROWS_ALL ? out : few;
}

static void put_differences(struct hec_page *page, const struct hec_summary *s) {
    const struct hec_device_diagnosis *first = typical(s);
    uint64_t alike = 0, rows = hec_terminal_gpu_rows(s, page->all);
    int left = 0;
    text gpu, other, here, there;
    for (int i = 0; i < s->device_count; i++) {
        const struct hec_device_diagnosis *d = &s->devices[i];
        struct apart by = d->readings.used && d != first ? apart(d, first) : (struct apart){0};
        if (by.most <= 1) {
            alike |= d->readings.used ? hec_device_bit(d->readings.device.index) : 0;
            continue;
        }
        if (!(rows & hec_device_bit(d->readings.device.index))) {
            left++;
            continue;
        }
        if (by.state < 0) {
            hec_format_si(here, hec_terminal_watts(&d->readings), 3, "W");
            hec_format_si(there, hec_terminal_watts(&first->readings), 3, "W");
        } else {
            hec_format_share(here, share_of(d, by.state));
            hec_format_share(there, share_of(first, by.state));
        }
        hec_page_row(page, 2, "differs", HEC_TONE_WARN, "%s: %s %s; %s: %s",
                     hec_format_gpu(gpu, d->readings.device.index),
                     by.state < 0 ? "mean power" : hec_state_name((enum hec_state)by.state), here,
                     hec_format_gpu(other, first->readings.device.index), there);
    }
    if (left)
        hec_page_row(page, 2, "", HEC_TONE_WARN, "and %d more (-v shows each)", left);
    if (alike != hec_device_bit(first->readings.device.index))
        hec_page_row(page, 2, "alike", HEC_TONE_DIM, "%s; below, %s stands for them (-v shows each)",
                     hec_devices_word(gpu, alike), hec_format_gpu(other, first->readings.device.index));
}

/* ---- the table ---- */

enum fixed { ENERGY, POWER, BUSY, SM, TENSOR, DRAM, FIXED };

static const struct {
    const char *heading;
    int width, metric; /* -1: no metric */
} fixed[FIXED] = {
    [ENERGY] = {"energy", 9, -1},
    [POWER] = {"power", 8, -1},
    [BUSY] = {"busy", 8, -1},
    [SM] = {"SM active", 11, HEC_GPM_SM_ACTIVE},
    [TENSOR] = {"tensor", 8, HEC_GPM_TENSOR_ACTIVE},
    [DRAM] = {"DRAM", 8, HEC_GPM_DRAM_ACTIVE},
};

static const char *cell(text out, const struct hec_device_diagnosis *d, int column) {
    double joules = d->readings.energy.valid ? d->readings.energy.joules : NAN,
           watts = hec_terminal_watts(&d->readings);
    if (column == ENERGY)
        return isfinite(joules) ? hec_format_si(out, joules, 3, "J") : "-";
    if (column == POWER)
        return isfinite(watts) ? hec_format_si(out, watts, 3, "W") : "-";
    return hec_format_share(out, column == BUSY   ? hec_terminal_busy(d)
                                 : column < FIXED ? d->readings.metric[fixed[column].metric].mean
                                                  : share_of(d, column - FIXED));
}

/* Columns that some device has a figure for: the fixed ones, then states, largest first, as many as there is room for. */
static int columns_of(const struct hec_summary *s, int room, int columns[FIXED + HEC_STATE_COUNT]) {
    int count = 0;
    double worth[FIXED + HEC_STATE_COUNT];
    for (int c = 0; c < FIXED + HEC_STATE_COUNT; c++) {
        text value;
        worth[c] = 0;
        for (int i = 0; i < s->device_count; i++) {
            const struct hec_device_diagnosis *d = &s->devices[i];
            if (d->readings.used && c < FIXED)
                worth[c] = fmax(worth[c], strcmp(cell(value, d, c), "-") == 0 ? 0 : 100 - c);
            else if (d->readings.used && share_of(d, c - FIXED) >= STATE_LEAST)
                worth[c] = fmax(worth[c], share_of(d, c - FIXED));
        }
    }
    for (;;) {
        int best = -1;
        for (int c = 0; c < FIXED + HEC_STATE_COUNT; c++)
            if (worth[c] > 0 && (best < 0 || worth[c] > worth[best]))
                best = c;
        int width = best < 0 ? 0 : best < FIXED ? fixed[best].width : 11;
        if (best < 0 || width > room)
            return count;
        columns[count++] = best;
        worth[best] = 0;
        room -= width;
    }
}

static void put_cells(struct hec_page *page, const struct hec_device_diagnosis *d, const int *columns, int count) {
    char line[512] = "";
    text gpu, value;
    for (int i = 0; i < count; i++) {
        int c = columns[i];
        const char *heading = c < FIXED ? fixed[c].heading : hec_state_name((enum hec_state)(c - FIXED));
        snprintf(line + strlen(line), sizeof line - strlen(line), "%*s", c < FIXED ? fixed[c].width : 11,
                 d ? cell(value, d, c) : heading);
    }
    hec_page_line(page, 2, d ? hec_format_gpu(gpu, d->readings.device.index) : "", d ? HEC_TONE_PLAIN : HEC_TONE_DIM,
                  "%s", line);
}

void hec_terminal_gpus(struct hec_page *page, const struct hec_summary *s) {
    int columns[FIXED + HEC_STATE_COUNT], used = 0, count;
    const struct hec_device_diagnosis *first = typical(s);
    bool one_kind = true;
    for (int i = 0; i < s->device_count; i++) {
        used += s->devices[i].readings.used;
        one_kind &= !s->devices[i].readings.used ||
                    strcmp(s->devices[i].readings.device.name, first->readings.device.name) == 0;
    }
    if (used < 2)
        return;
    count = columns_of(s, page->columns - LABEL_COLUMNS - 3, columns); /* hec_page_line keeps 3 */
    hec_page_blank(page);
    hec_page_row(page, 0, "GPUs", HEC_TONE_BOLD, "%d used%s%s", used,
                 one_kind && first->readings.device.name[0] ? ": " : "", one_kind ? first->readings.device.name : "");
    if (count)
        put_cells(page, NULL, columns, count);
    uint64_t rows = hec_terminal_gpu_rows(s, page->all);
    for (int i = 0; i < s->device_count && count; i++)
        if (rows & hec_device_bit(s->devices[i].readings.device.index))
            put_cells(page, &s->devices[i], columns, count);
    put_differences(page, s);
}
