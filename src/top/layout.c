#include "top/layout.h"

#include "base/clock.h"
#include "report/format.h"

#include <math.h>
#include <stdio.h>

void hec_top_fit(const struct hec_top_column *columns, int count, unsigned wanted, int room, int width[]) {
    int used = -1;
    for (int i = 0; i < count; i++)
        width[i] = 0;
    for (int rank = 0; rank < count; rank++)
        for (int i = 0; i < count; i++)
            if (columns[i].rank == rank && wanted >> i & 1 && used + 1 + columns[i].least <= room) {
                width[i] = columns[i].least;
                used += 1 + columns[i].least;
            }
    for (bool grew = true; grew && used < room;) { /* the rest, column by column to those that grow */
        grew = false;
        for (int i = 0; i < count && used < room; i++)
            if (width[i] && width[i] < columns[i].most) {
                width[i]++;
                used++;
                grew = true;
            }
    }
}

/* "hec top  node7  8 GPUs  2.91 kW of 5.6 kW  12.4 kJ in 4 min 12 s": joules of all devices, since it began. */
static void put_head(const struct hec_top_state *state, const struct hec_top_view *view, struct hec_sheet *sheet) {
    char line[512], watts[HEC_FORMAT_SIZE], limit[HEC_FORMAT_SIZE], joules[HEC_FORMAT_SIZE], past[HEC_FORMAT_SIZE];
    double power = 0, most = 0, sum = 0, span = 0;
    int lost = 0, simulated = 0, powers = 0, sums = 0;
    for (int i = 0; i < state->device_count; i++) {
        const struct hec_top_device *device = &state->devices[i];
        lost += !device->up;
        simulated += device->simulated;
        powers += !isnan(device->power_w);
        sums += !isnan(device->joules);
        power += isnan(device->power_w) ? 0 : device->power_w;
        most += isnan(device->limit_w) ? 0 : device->limit_w;
        sum += isnan(device->joules) ? 0 : device->joules;
        span = fmax(span, device->joules_s);
    }
    int used = snprintf(line, sizeof line, "hec top %s  %d GPU%s", state->host, state->device_count,
                        state->device_count == 1 ? "" : "s");
    if (simulated)
        used += snprintf(line + used, sizeof line - (size_t)used, " (simulated)");
    if (lost)
        used += snprintf(line + used, sizeof line - (size_t)used, ", %d LOST", lost);
    if (powers && most > 0)
        used += snprintf(line + used, sizeof line - (size_t)used, "  %s of %s", hec_format_si(watts, power, 3, "W"),
                         hec_format_si(limit, most, 3, "W"));
    if (sums && span > 0)
        used += snprintf(line + used, sizeof line - (size_t)used, "  %s in %s", hec_format_si(joules, sum, 3, "J"),
                         hec_format_seconds(past, span));
    snprintf(line + used, sizeof line - (size_t)used, "  every %.3g s", (double)state->interval_ns / HEC_NS_PER_S);
    hec_sheet_put(sheet, 0, 0, sheet->columns, false, HEC_TONE_BOLD, line);
    if (view->paused)
        hec_sheet_put(sheet, 0, sheet->columns - 7, 7, false, HEC_TONE_WARN, " PAUSED");
}

static void put_foot(const struct hec_top_state *state, const struct hec_top_view *view, struct hec_sheet *sheet,
                     struct hec_buf *left_out) {
    char line[1024];
    int used = 0, row = sheet->rows - 1;
    if (view->typing) {
        snprintf(line, sizeof line, "filter: %s_   Enter keeps it, Esc clears it", view->filter);
        hec_sheet_put(sheet, row, 0, sheet->columns, false, HEC_TONE_BOLD, line);
        return;
    }
    if (state->left_out)
        hec_buf_printf(left_out, "%s%llu processes", left_out->length ? " " : "", (unsigned long long)state->left_out);
    if (!view->plain)
        used = snprintf(line, sizeof line, "h help  q quit  ");
    if (view->filter[0])
        used += snprintf(line + used, sizeof line - (size_t)used, "filter: %s  ", view->filter);
    if (left_out->length)
        used += snprintf(line + used, sizeof line - (size_t)used, "not shown: %s", hec_buf_text(left_out));
    else if (!view->plain)
        snprintf(line + used, sizeof line - (size_t)used, "P J M < > sort  / filter  d devices  space pause");
    else
        line[used] = '\0';
    hec_sheet_put(sheet, row, 0, sheet->columns, false, HEC_TONE_DIM, line);
}

static void put_help(struct hec_sheet *sheet) {
    static const char *const lines[] = {
        "q  leave            h ?  this page; any key leaves it    space  pause",
        "P J M N             sort by watts, joules, memory, pid",
        "< >                 sort by the column beside            R  turn the order",
        "/                   filter by command, user, pod, job; Esc clears it",
        "d                   devices only",
        "arrows, pages       scroll",
        "",
        "W JOULES            of a process: its share of the GPU's energy counter since",
        "                    top began; an estimate, by SM utilisation (docs/top.md)",
        "SM% TENS% DRAM%     SMs with a warp, tensor pipes, memory bandwidth in use:",
        "                    counters of the GPU, of all there is",
        "UTIL%               some kernel was there: what nvidia-smi shows",
        "VERDICT             what counters say of the last minute: likely, not shown",
        "WASTED              (--waste) drawn while somebody held a GPU and nothing ran",
        "THROTTLED           why clocks are low",
        "-                   not measured; never 0",
    };
    for (int i = 0; i < (int)(sizeof lines / sizeof lines[0]); i++)
        hec_sheet_put(sheet, 2 + i, 1, sheet->columns - 1, false, HEC_TONE_PLAIN, lines[i]);
}

int hec_top_rows(const struct hec_top_state *state) {
    return 10 + 2 * state->device_count + state->process_count + state->waste_count + state->team_count;
}

void hec_top_layout(const struct hec_top_state *state, struct hec_top_view *view, struct hec_sheet *sheet) {
    struct hec_buf left_out;
    int room = sheet->rows - 2, devices = state->device_count > 0 ? state->device_count : 1, row = 1;
    hec_buf_init(&left_out, 1000);
    put_head(state, view, sheet);
    if (view->help) {
        put_help(sheet);
        put_foot(state, view, sheet, &left_out);
        hec_buf_free(&left_out);
        return;
    }
    /* a second line a device, where processes keep a third of the rows */
    bool second =
        hec_top_second_line(state, sheet->columns) && 1 + 2 * devices <= (view->devices_only ? room : room * 2 / 3);
    int lines = second ? 2 : 1;
    if (view->devices_only) {
        view->page = (room - 1) / lines;
        if (view->scroll > devices - view->page)
            view->scroll = devices - view->page;
        if (view->scroll < 0)
            view->scroll = 0;
        hec_top_put_devices(state, view, sheet, row, room, lines, &left_out);
    } else {
        int rows = 1 + lines * devices;
        if (rows > room - room / 3 && rows > room - 3)
            rows = room - room / 3 > 2 ? room - room / 3 : 2;
        row = hec_top_put_devices(state, view, sheet, row, rows, lines, &left_out);
        row += row + 4 < sheet->rows - 1 && room > 12; /* a blank one */
        if (state->waste && row + 1 < sheet->rows - 1)
            hec_top_put_waste(state, view, sheet, row, sheet->rows - 1 - row, &left_out);
        else if (row + 1 < sheet->rows - 1)
            hec_top_put_processes(state, view, sheet, row, sheet->rows - 1 - row, &left_out);
        else
            hec_buf_printf(&left_out, "%sprocesses", left_out.length ? " " : "");
    }
    put_foot(state, view, sheet, &left_out);
    hec_buf_free(&left_out);
}
