/* One row a process and device, and one for what is of no process. */
#include "report/format.h"
#include "top/layout.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum column {
#define HEC_TOP_PROCESS(id, heading, least, most, right, rank, sort) COLUMN_##id,
#include "top/columns.def"
#undef HEC_TOP_PROCESS
    COLUMN_COUNT
};
_Static_assert(COLUMN_COUNT <= HEC_TOP_COLUMNS_MAX, "a width for each column");

static const struct hec_top_column columns[COLUMN_COUNT] = {
#define HEC_TOP_PROCESS(id, heading, least, most, right, rank, sort) {heading, least, most, right, rank, heading},
#include "top/columns.def"
#undef HEC_TOP_PROCESS
};
static const enum hec_top_sort sorts[COLUMN_COUNT] = {
#define HEC_TOP_PROCESS(id, heading, least, most, right, rank, sort) HEC_TOP_##sort,
#include "top/columns.def"
#undef HEC_TOP_PROCESS
};

static bool passes(const struct hec_top_process *process, const char *filter) {
    char pid[16];
    snprintf(pid, sizeof pid, "%d", process->pid);
    return !filter[0] || strcasestr(process->command, filter) || strcasestr(process->user, filter) ||
           strcasestr(process->work, filter) || strcmp(pid, filter) == 0;
}

/* Numbers from the largest on, what is not known last; texts from A on. */
static int by_number(double a, double b) {
    if (isnan(a) || isnan(b))
        return isnan(a) - isnan(b);
    return (a < b) - (a > b);
}

struct sorting {
    const struct hec_top_state *state;
    const struct hec_top_view *view;
};

static int compare(const void *left, const void *right, void *context) {
    const struct sorting *sorting = context;
    const struct hec_top_process *a = &sorting->state->processes[*(const int *)left];
    const struct hec_top_process *b = &sorting->state->processes[*(const int *)right];
    int order = 0;
    switch (sorting->view->sort) {
    case HEC_TOP_WATTS:
        order = by_number(a->watts, b->watts);
        break;
    case HEC_TOP_JOULES:
        order = by_number(a->joules, b->joules);
        break;
    case HEC_TOP_MEMORY:
        order = by_number(a->memory, b->memory);
        break;
    case HEC_TOP_SM:
        order = by_number(a->sm, b->sm);
        break;
    case HEC_TOP_USER:
        order = strcmp(a->user, b->user);
        break;
    case HEC_TOP_COMMAND:
        order = strcmp(a->command, b->command);
        break;
    case HEC_TOP_GPU:
        order = a->device - b->device;
        break;
    default:
        order = 0;
    }
    if (order == 0)
        order = (a->pid > b->pid) - (a->pid < b->pid);
    if (order == 0)
        order = a->device - b->device;
    return sorting->view->backwards ? -order : order;
}

int hec_top_order(const struct hec_top_state *state, const struct hec_top_view *view,
                  int order[HEC_TOP_PROCESSES_MAX]) {
    struct sorting sorting = {state, view};
    int count = 0;
    for (int i = 0; i < state->process_count; i++)
        if (passes(&state->processes[i], view->filter))
            order[count++] = i;
    qsort_r(order, (size_t)count, sizeof order[0], compare, &sorting);
    return count;
}

static void amount(char text[HEC_FORMAT_SIZE], double value, int decimals) {
    snprintf(text, HEC_FORMAT_SIZE, isnan(value) ? "-" : "%.*f", decimals, value);
}

/* The command without the folder of its program, which says the least. */
static const char *program_of(const char *command) {
    const char *shown = command;
    for (const char *at = command; *at && *at != ' '; at++)
        if (*at == '/' && at[1] && at[1] != ' ')
            shown = at + 1;
    return *shown ? shown : "-";
}

static const char *text_of(const struct hec_top_state *state, const struct hec_top_process *process, enum column column,
                           char text[HEC_FORMAT_SIZE]) {
    switch (column) {
    case COLUMN_PID:
        snprintf(text, HEC_FORMAT_SIZE, "%d", process->pid);
        break;
    case COLUMN_USER:
        return process->user;
    case COLUMN_GPU:
        snprintf(text, HEC_FORMAT_SIZE, "%d", hec_top_device_at(state, process->device)->ordinal);
        break;
    case COLUMN_WATTS:
        amount(text, process->watts, process->watts < 10 ? 1 : 0);
        break;
    case COLUMN_JOULES:
        if (isnan(process->joules))
            return "-";
        return hec_format_si(text, process->joules, 3, "J");
    case COLUMN_SM:
        amount(text, 100 * process->sm, 0);
        break;
    case COLUMN_MEMORY:
        if (isnan(process->memory))
            return "-";
        return hec_format_bytes(text, process->memory, "");
    case COLUMN_WORK:
        return process->work[0] ? process->work : "-";
    default:
        return program_of(process->command);
    }
    return text;
}

/* Joules that are in no row above: the sums of all rows are those of the devices. */
static int put_rest(const struct hec_top_state *state, const int width[], struct hec_sheet *sheet, int row) {
    const struct {
        const char *what;
        double joules;
    } rests[] = {
        {"no process: idle, or unattributed", 0},
        {"processes that have ended", 0},
    };
    for (size_t r = 0; r < sizeof rests / sizeof rests[0]; r++) {
        double joules = 0;
        for (int i = 0; i < state->device_count; i++) {
            double of = r == 0 ? state->devices[i].nobody : state->devices[i].ended;
            joules += isnan(of) ? 0 : of;
        }
        if (joules <= 0 || row >= sheet->rows)
            continue;
        for (int i = 0, at = 0; i < COLUMN_COUNT; at += width[i] ? width[i] + 1 : 0, i++) {
            char text[HEC_FORMAT_SIZE];
            if (i == COLUMN_JOULES)
                hec_sheet_put(sheet, row, at, width[i], true, HEC_TONE_DIM, hec_format_si(text, joules, 3, "J"));
            else if (i == COLUMN_COMMAND)
                hec_sheet_put(sheet, row, at, width[i], false, HEC_TONE_DIM, rests[r].what);
        }
        row++;
    }
    return row;
}

int hec_top_put_processes(const struct hec_top_state *state, struct hec_top_view *view, struct hec_sheet *sheet,
                          int row, int rows, struct hec_buf *left_out) {
    int width[HEC_TOP_COLUMNS_MAX], order[HEC_TOP_PROCESSES_MAX], end = row + rows;
    int count = hec_top_order(state, view, order);
    unsigned wanted = (1u << COLUMN_COUNT) - 1;
    bool work = false;
    for (int i = 0; i < state->process_count; i++)
        work |= state->processes[i].work[0] != '\0';
    if (!work)
        wanted &= ~(1u << COLUMN_WORK);
    hec_top_fit(columns, COLUMN_COUNT, wanted, sheet->columns, width);
    for (int i = 0, at = 0; i < COLUMN_COUNT; at += width[i] ? width[i] + 1 : 0, i++) {
        bool sorted = sorts[i] == view->sort;
        hec_sheet_put(sheet, row, at, width[i], columns[i].right, sorted ? HEC_TONE_BOLD : HEC_TONE_PLAIN,
                      columns[i].heading);
        if (sorted && width[i] > hec_sheet_width(sheet, columns[i].heading)) {
            int mark = columns[i].right ? at + width[i] - hec_sheet_width(sheet, columns[i].heading) - 1
                                        : at + hec_sheet_width(sheet, columns[i].heading);
            hec_sheet_put(sheet, row, mark, 1, false, HEC_TONE_BOLD,
                          sheet->utf8 ? (view->backwards ? "\u25b4" : "\u25be") : (view->backwards ? "^" : "v"));
        }
        if (wanted >> i & 1 && !width[i])
            hec_buf_printf(left_out, "%s%s", left_out->length ? " " : "", columns[i].heading);
    }
    hec_sheet_head(sheet, row++);
    view->page = end - row;
    if (view->scroll > count - view->page)
        view->scroll = count - view->page;
    if (view->scroll < 0)
        view->scroll = 0;
    for (int p = view->scroll; p < count && row < end; p++, row++) {
        const struct hec_top_process *process = &state->processes[order[p]];
        for (int i = 0, at = 0; i < COLUMN_COUNT; at += width[i] ? width[i] + 1 : 0, i++) {
            char text[HEC_FORMAT_SIZE];
            if (width[i])
                hec_sheet_put(sheet, row, at, width[i], columns[i].right, HEC_TONE_PLAIN,
                              text_of(state, process, (enum column)i, text));
        }
    }
    if (count == 0 && row < end)
        hec_sheet_put(sheet, row++, 0, sheet->columns, false, HEC_TONE_DIM,
                      state->process_count ? "no process passes the filter" : "no process has a context on a GPU");
    return row + 1 < end ? put_rest(state, width, sheet, row) : row;
}
