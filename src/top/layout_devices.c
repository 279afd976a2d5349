/* One row a device, and a second one for what found no room in the first. */
#include "report/format.h"
#include "top/layout.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum column {
#define HEC_TOP_DEVICE(id, heading, least, most, right, rank, label) COLUMN_##id,
#include "top/columns.def"
#undef HEC_TOP_DEVICE
    COLUMN_COUNT
};
_Static_assert(COLUMN_COUNT <= HEC_TOP_COLUMNS_MAX, "a width for each column");

static const struct hec_top_column columns[COLUMN_COUNT] = {
#define HEC_TOP_DEVICE(id, heading, least, most, right, rank, label) {heading, least, most, right, rank, label},
#include "top/columns.def"
#undef HEC_TOP_DEVICE
};

static void percent(char text[HEC_FORMAT_SIZE], double share) {
    snprintf(text, HEC_FORMAT_SIZE, isnan(share) ? "-" : "%.0f", 100 * share);
}

static void figure(char text[HEC_FORMAT_SIZE], int decimals, double value) {
    snprintf(text, HEC_FORMAT_SIZE, isnan(value) ? "-" : "%.*f", decimals, value);
}

/* "512/700": what is used of what there is. */
static void part(char text[HEC_FORMAT_SIZE], double used, double most, double unit, int decimals) {
    char first[HEC_FORMAT_SIZE / 3], second[HEC_FORMAT_SIZE / 3];
    snprintf(first, sizeof first, isnan(used) ? "-" : "%.*f", decimals, used / unit);
    snprintf(second, sizeof second, isnan(most) ? "-" : "%.0f", most / unit);
    snprintf(text, HEC_FORMAT_SIZE, "%s/%s", first, second);
}

static void text_of(const struct hec_top_device *device, enum column column, char text[HEC_FORMAT_SIZE]) {
    char throttle[HEC_TOP_TEXT];
    switch (column) {
    case COLUMN_GPU:
        snprintf(text, HEC_FORMAT_SIZE, "%d", device->ordinal);
        break;
    case COLUMN_NAME:
        snprintf(text, HEC_FORMAT_SIZE, "%s", device->name[0] ? hec_vendor_short(device->name) : "-");
        break;
    case COLUMN_WATTS:
        part(text, device->power_w, device->limit_w, 1, 0);
        break;
    case COLUMN_SM:
        percent(text, device->sm);
        break;
    case COLUMN_TENSOR:
        percent(text, device->tensor);
        break;
    case COLUMN_DRAM:
        percent(text, device->dram);
        break;
    case COLUMN_UTIL:
        percent(text, device->util);
        break;
    case COLUMN_PCIE_IN:
    case COLUMN_PCIE_OUT: {
        double bytes = column == COLUMN_PCIE_IN ? device->pcie_in : device->pcie_out;
        if (isnan(bytes))
            strcpy(text, "-");
        else
            hec_format_bytes(text, bytes, "");
        break;
    }
    case COLUMN_MEMORY:
        part(text, device->memory_used, device->memory_total, 1e9, 1);
        break;
    case COLUMN_TEMPERATURE:
        figure(text, 0, device->temperature_c);
        break;
    case COLUMN_VERDICT:
        snprintf(text, HEC_FORMAT_SIZE, "%s", hec_top_verdict(device)[0] ? hec_top_verdict(device) : "-");
        break;
    case COLUMN_THROTTLE:
        hec_top_throttle(device, throttle);
        snprintf(text, HEC_FORMAT_SIZE, "%.90s", throttle[0] ? throttle : "-");
        break;
    case COLUMN_JOULES:
        if (isnan(device->joules))
            strcpy(text, "-");
        else
            hec_format_si(text, device->joules, 3, "J");
        break;
    default:
        text[0] = '\0';
    }
}

static enum hec_tone tone_of(const struct hec_top_device *device, enum column column) {
    static const enum hec_tone verdicts[HEC_AGENT_VERDICTS] = {
        [HEC_AGENT_VERDICT_HEALTHY] = HEC_TONE_GOOD,        [HEC_AGENT_VERDICT_STARVED] = HEC_TONE_WARN,
        [HEC_AGENT_VERDICT_OVERHEAD_BOUND] = HEC_TONE_WARN, [HEC_AGENT_VERDICT_TRANSFER_BOUND] = HEC_TONE_WARN,
        [HEC_AGENT_VERDICT_THROTTLED] = HEC_TONE_BAD,       [HEC_AGENT_VERDICT_IDLE_ALLOCATED] = HEC_TONE_WARN,
        [HEC_AGENT_VERDICT_IDLE_FREE] = HEC_TONE_DIM,
    };
    if (!device->up)
        return column == COLUMN_VERDICT ? HEC_TONE_BAD : HEC_TONE_DIM;
    if (column == COLUMN_VERDICT)
        return device->verdict == HEC_VERDICT_UNKNOWN ? HEC_TONE_DIM : verdicts[device->verdict];
    if (column == COLUMN_THROTTLE) /* a power cap is a choice, heat and brakes are not */
        return device->throttle <= 0                         ? HEC_TONE_DIM
               : device->throttle == 1 << HEC_THROTTLE_POWER ? HEC_TONE_WARN
                                                             : HEC_TONE_BAD;
    return column == COLUMN_GPU ? HEC_TONE_BOLD : column == COLUMN_BAR ? HEC_TONE_GOOD : HEC_TONE_PLAIN;
}

static void put(const struct hec_top_device *device, enum column column, struct hec_sheet *sheet, int row, int at,
                int width) {
    char text[HEC_FORMAT_SIZE];
    enum hec_tone tone = tone_of(device, column);
    text_of(device, column, text);
    if (column == COLUMN_BAR)
        hec_sheet_bar(sheet, row, at, width, tone, device->power_w / device->limit_w);
    else if (column == COLUMN_COURSE)
        hec_sheet_course(sheet, row, at, width, HEC_TONE_GOOD, device->course, HEC_TOP_COURSE, device->limit_w);
    else
        hec_sheet_put(sheet, row, at, width, columns[column].right, tone, text);
}

/* What the first line has no room for: the name, figures with their labels, and the course of power to the end. Bits of those that
 * find no room here either. */
static unsigned put_second(const struct hec_top_device *device, unsigned missing, struct hec_sheet *sheet, int row) {
    int at = 4;
    unsigned left = 0;
    missing &= ~(1u << COLUMN_BAR);
    for (int i = 0; i < COLUMN_COUNT; i++) {
        char text[HEC_FORMAT_SIZE], shown[2 * HEC_FORMAT_SIZE];
        if (!(missing >> i & 1) || i == COLUMN_COURSE)
            continue;
        text_of(device, (enum column)i, text);
        snprintf(shown, sizeof shown, "%s%s%s", columns[i].label, columns[i].label[0] ? " " : "", text);
        int width = hec_sheet_width(sheet, shown);
        int room = (columns[i].label[0] ? hec_sheet_width(sheet, columns[i].label) + 1 : 0) + columns[i].least;
        if (width < room || i == COLUMN_NAME) /* one below the other; a name may be long */
            width = room;
        if (at + width > sheet->columns) {
            left |= 1u << i;
            continue;
        }
        hec_sheet_put(sheet, row, at, width, false, HEC_TONE_DIM, shown);
        at += width + 2;
    }
    if (!(missing >> COLUMN_COURSE & 1))
        return left;
    if (sheet->columns - at < columns[COLUMN_COURSE].least / 2)
        return left | 1u << COLUMN_COURSE;
    int width = sheet->columns - at < columns[COLUMN_COURSE].most ? sheet->columns - at : columns[COLUMN_COURSE].most;
    hec_sheet_course(sheet, row, at, width, HEC_TONE_GOOD, device->course, HEC_TOP_COURSE, device->limit_w);
    return left;
}

/* The driver's utilisation only where a device has nothing better. */
static unsigned wanted_of(const struct hec_top_state *state) {
    unsigned all = (1u << COLUMN_COUNT) - 1;
    for (int i = 0; i < state->device_count; i++)
        if (isnan(state->devices[i].sm) && !isnan(state->devices[i].util))
            return all;
    return all & ~(1u << COLUMN_UTIL);
}

bool hec_top_second_line(const struct hec_top_state *state, int room) {
    int width[HEC_TOP_COLUMNS_MAX];
    unsigned wanted = wanted_of(state);
    hec_top_fit(columns, COLUMN_COUNT, wanted, room, width);
    for (int i = 0; i < COLUMN_COUNT; i++)
        if (wanted >> i & 1 && !width[i] && i != COLUMN_JOULES && i != COLUMN_COURSE)
            return true;
    return false;
}

static void name_left_out(unsigned left, struct hec_buf *out) {
    for (int i = 0; i < COLUMN_COUNT; i++)
        if (left >> i & 1)
            hec_buf_printf(out, "%s%s", out->length ? " " : "", columns[i].heading);
}

int hec_top_put_devices(const struct hec_top_state *state, const struct hec_top_view *view, struct hec_sheet *sheet,
                        int row, int rows, int lines, struct hec_buf *left_out) {
    int width[HEC_TOP_COLUMNS_MAX], end = row + rows, first = view->devices_only ? view->scroll : 0;
    unsigned missing = 0, left = 0;
    unsigned wanted = wanted_of(state);
    hec_top_fit(columns, COLUMN_COUNT, wanted, sheet->columns, width);
    for (int i = 0, at = 0; i < COLUMN_COUNT; at += width[i] ? width[i] + 1 : 0, i++) {
        missing |= wanted & (unsigned)(width[i] == 0) << i;
        hec_sheet_put(sheet, row, at, width[i], columns[i].right, HEC_TONE_PLAIN, columns[i].heading);
    }
    hec_sheet_head(sheet, row++);
    if (lines == 1)
        left = missing;
    int fit = (end - row) / lines, more = state->device_count - first - fit;
    if (more > 0 && fit * lines + 1 > end - row && fit > 1) { /* a row to say so */
        fit--;
        more++;
    }
    for (int d = first; d < state->device_count && d < first + fit; d++, row += lines) {
        const struct hec_top_device *device = &state->devices[d];
        for (int i = 0, at = 0; i < COLUMN_COUNT; at += width[i] ? width[i] + 1 : 0, i++)
            if (width[i])
                put(device, (enum column)i, sheet, row, at, width[i]);
        if (lines > 1 && missing)
            left |= put_second(device, missing, sheet, row + 1);
    }
    if (more > 0 && row < end) {
        char text[HEC_FORMAT_SIZE];
        snprintf(text, sizeof text, "    %d more GPU%s: %s", more, more > 1 ? "s" : "",
                 view->devices_only ? "arrow keys" : "d, then arrow keys");
        hec_sheet_put(sheet, row++, 0, sheet->columns, false, HEC_TONE_WARN, text);
    }
    if (state->device_count == 0) {
        char text[sizeof state->trouble + 16];
        snprintf(text, sizeof text, "%s%s", state->trouble[0] ? "no GPU: " : "looking for GPUs", state->trouble);
        hec_sheet_put(sheet, row++, 0, sheet->columns, false, HEC_TONE_WARN, text);
    }
    name_left_out(left, left_out);
    return row;
}
