/* A page of character cells: what a terminal is to show. Pure; the locale says how wide characters are. */
#pragma once

#include "base/buf.h"
#include "report/page.h"

#define HEC_SHEET_COLUMNS_MAX 500
#define HEC_SHEET_ROWS_MAX 4096

struct hec_sheet_cell {
    char text[14]; /* one character, with what combines with it; "": the cell is covered by the wide one before it */
    unsigned char tone; /* enum hec_tone */
    bool bar;           /* of a heading: shown in reverse */
};

struct hec_sheet {
    int rows, columns;
    bool utf8;
    struct hec_sheet_cell *cells;
};

/* All blank. HEC_ERR_NOMEM; sizes beyond the limits are cut. */
int hec_sheet_init(struct hec_sheet *sheet, int rows, int columns, bool utf8);
void hec_sheet_free(struct hec_sheet *sheet);

/* Text into `width` columns from there, cut with a sign where it is longer; right: to their right end. Control characters and what
 * is no UTF-8 become '?'. Returns how many columns the text took. Outside of the sheet nothing is put. */
int hec_sheet_put(struct hec_sheet *sheet, int row, int column, int width, bool right, enum hec_tone tone,
                  const char *text);
/* Columns that it would take. */
int hec_sheet_width(const struct hec_sheet *sheet, const char *text);
/* share of a bar of `width` columns, to an eighth of one; NAN: an empty one. */
void hec_sheet_bar(struct hec_sheet *sheet, int row, int column, int width, enum hec_tone tone, double share);
/* The newest `width` of count values, one a column, from 0 to most; NAN leaves a gap. */
void hec_sheet_course(struct hec_sheet *sheet, int row, int column, int width, enum hec_tone tone, const double *values,
                      int count, double most);
/* The whole row is a heading. */
void hec_sheet_head(struct hec_sheet *sheet, int row);

/* As plain lines, without blanks at their ends nor blank lines at the end. */
void hec_sheet_print(const struct hec_sheet *sheet, struct hec_buf *out);
