/* The page of `hec top`: state and size in, cells out. Pure, so that the screen only draws. */
#pragma once

#include "top/sheet.h"
#include "top/state.h"
#include "top/view.h"

/* Onto a sheet that is blank. Keeps view->scroll within what there is. */
void hec_top_layout(const struct hec_top_state *state, struct hec_top_view *view, struct hec_sheet *sheet);
/* Rows by which nothing is left out for want of rows. */
int hec_top_rows(const struct hec_top_state *state);
/* The processes that pass the filter, in the order of the view: places in state->processes. Returns how many. */
int hec_top_order(const struct hec_top_state *state, const struct hec_top_view *view, int order[HEC_TOP_PROCESSES_MAX]);

/* Inside src/top: blocks of rows from `row` on. */
struct hec_top_column {
    const char *heading;
    int least, most;
    bool right;
    int rank;
    const char *label;
};
#define HEC_TOP_COLUMNS_MAX 16
/* Which columns of the table find room side by side, and how wide each is; 0: none. wanted: bits of those to be shown. */
void hec_top_fit(const struct hec_top_column *columns, int count, unsigned wanted, int room, int width[]);
/* Whether devices have more to show than finds room side by side. */
bool hec_top_second_line(const struct hec_top_state *state, int room);
/* lines: rows a device may take, 1 or 2. Returns the next row; *left_out: bits of columns that are not shown. */
int hec_top_put_devices(const struct hec_top_state *state, const struct hec_top_view *view, struct hec_sheet *sheet,
                        int row, int rows, int lines, struct hec_buf *left_out);
/* Those that pass the filter, most wasted first: places in state->wastes. Returns how many. */
int hec_top_wastes(const struct hec_top_state *state, const struct hec_top_view *view, int order[HEC_WASTE_TENANTS]);
int hec_top_put_waste(const struct hec_top_state *state, struct hec_top_view *view, struct hec_sheet *sheet, int row,
                      int rows, struct hec_buf *left_out);
int hec_top_put_processes(const struct hec_top_state *state, struct hec_top_view *view, struct hec_sheet *sheet,
                          int row, int rows, struct hec_buf *left_out);
