/* Who wastes most: a row a pod, job or program, then one a team. */
#include "report/format.h"
#include "top/layout.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum column {
#define HEC_TOP_WASTE(id, heading, least, most, right, rank) COLUMN_##id,
#include "top/columns.def"
#undef HEC_TOP_WASTE
    COLUMN_COUNT
};
_Static_assert(COLUMN_COUNT <= HEC_TOP_COLUMNS_MAX, "a width for each column");

static const struct hec_top_column columns[COLUMN_COUNT] = {
#define HEC_TOP_WASTE(id, heading, least, most, right, rank) {heading, least, most, right, rank, heading},
#include "top/columns.def"
#undef HEC_TOP_WASTE
};

static const char *or_none(const char *text) {
    return text[0] ? text : "-";
}

/* What counters alone tell is likely. */
static const char *now_of(const struct hec_top_waste *row, char text[HEC_FORMAT_SIZE]) {
    if (row->said.cause == HEC_WASTE_UNKNOWN)
        return "-";
    const char *name = row->said.cause == HEC_CAUSE_NONE ? "healthy" : hec_waste_name(row->said.cause);
    snprintf(text, HEC_FORMAT_SIZE, "%s%s", row->said.by_job ? "" : "likely ", name);
    return text;
}

static const char *text_of(const struct hec_top_waste *row, enum column column, char text[HEC_FORMAT_SIZE]) {
    switch (column) {
    case COLUMN_WASTED:
        return isnan(row->wasted) ? "-" : hec_format_si(text, row->wasted, 3, "J");
    case COLUMN_WORKED:
        snprintf(text, HEC_FORMAT_SIZE, isnan(row->worked) ? "-" : "%.0f", 100 * row->worked);
        return text;
    case COLUMN_NOW:
        return now_of(row, text);
    case COLUMN_ADVICE:
        return row->scale == HEC_SCALE_OUT ? "scale out" : row->scale == HEC_SCALE_OPTIMISE ? "tune first" : "-";
    case COLUMN_TEAM:
        return or_none(row->team);
    case COLUMN_USER:
        return or_none(row->user);
    case COLUMN_JOB:
        return or_none(row->job);
    case COLUMN_JOULES:
        return hec_format_si(text, row->joules, 3, "J");
    default:
        return row->pod[0] ? row->pod : or_none(row->command);
    }
}

static bool passes(const struct hec_top_waste *row, const char *filter) {
    return !filter[0] || strcasestr(row->team, filter) || strcasestr(row->user, filter) ||
           strcasestr(row->job, filter) || strcasestr(row->pod, filter) || strcasestr(row->command, filter);
}

int hec_top_wastes(const struct hec_top_state *state, const struct hec_top_view *view, int order[HEC_WASTE_TENANTS]) {
    int count = 0;
    for (int i = 0; i < state->waste_count; i++)
        if (passes(&state->wastes[i], view->filter))
            order[count++] = i;
    return count;
}

static void put_row(const struct hec_top_waste *row, const int width[], struct hec_sheet *sheet, int at_row) {
    for (int i = 0, at = 0; i < COLUMN_COUNT; at += width[i] ? width[i] + 1 : 0, i++) {
        char text[HEC_FORMAT_SIZE];
        if (width[i])
            hec_sheet_put(sheet, at_row, at, width[i], columns[i].right, HEC_TONE_PLAIN,
                          text_of(row, (enum column)i, text));
    }
}

int hec_top_put_waste(const struct hec_top_state *state, struct hec_top_view *view, struct hec_sheet *sheet, int row,
                      int rows, struct hec_buf *left_out) {
    int width[HEC_TOP_COLUMNS_MAX], order[HEC_WASTE_TENANTS], end = row + rows;
    int count = hec_top_wastes(state, view, order);
    hec_top_fit(columns, COLUMN_COUNT, (1u << COLUMN_COUNT) - 1, sheet->columns, width);
    for (int i = 0, at = 0; i < COLUMN_COUNT; at += width[i] ? width[i] + 1 : 0, i++) {
        hec_sheet_put(sheet, row, at, width[i], columns[i].right, HEC_TONE_PLAIN, columns[i].heading);
        if (!width[i])
            hec_buf_printf(left_out, "%s%s", left_out->length ? " " : "", columns[i].heading);
    }
    hec_sheet_head(sheet, row++);
    view->page = end - row;
    view->scroll = view->scroll > count - view->page ? count - view->page : view->scroll;
    view->scroll = view->scroll < 0 ? 0 : view->scroll;
    for (int i = view->scroll; i < count && row < end; i++)
        put_row(&state->wastes[order[i]], width, sheet, row++);
    if (count == 0 && row < end)
        hec_sheet_put(sheet, row++, 0, sheet->columns, false, HEC_TONE_DIM,
                      state->waste_count ? "nobody passes the filter" : "nobody holds a GPU");
    if (row + 1 < end && state->team_count > 0) {
        hec_sheet_put(sheet, ++row, 0, sheet->columns, false, HEC_TONE_BOLD, "By team");
        for (int i = 0; i < state->team_count && row + 1 < end; i++)
            put_row(&state->teams[i], width, sheet, ++row);
        row++;
    }
    return row;
}
