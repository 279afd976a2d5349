#include "top/sheet.h"

#include "base/error.h"
#include "base/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#define LEVELS 8

/* UTF-8, or ASCII that looks like it. */
static const char *const eighths[2][LEVELS + 1] = {
    {" ", " ", " ", " ", "-", "-", "-", "-", "="},
    {" ", "\u258f", "\u258e", "\u258d", "\u258c", "\u258b", "\u258a", "\u2589", "\u2588"},
};
static const char *const heights[2][LEVELS + 1] = {
    {"_", "_", ".", ".", ":", "-", "=", "+", "#"},
    {"\u2581", "\u2581", "\u2582", "\u2583", "\u2584", "\u2585", "\u2586", "\u2587", "\u2588"},
};
static const char *const rest[2] = {".", "\u00b7"};
static const char *const cut[2] = {"~", "\u2026"};

int hec_sheet_init(struct hec_sheet *sheet, int rows, int columns, bool utf8) {
    rows = rows < 1 ? 1 : rows > HEC_SHEET_ROWS_MAX ? HEC_SHEET_ROWS_MAX : rows;
    columns = columns < 1 ? 1 : columns > HEC_SHEET_COLUMNS_MAX ? HEC_SHEET_COLUMNS_MAX : columns;
    *sheet = (struct hec_sheet){.rows = rows, .columns = columns, .utf8 = utf8};
    sheet->cells = calloc((size_t)rows * (size_t)columns, sizeof *sheet->cells);
    for (int i = 0; sheet->cells && i < rows * columns; i++)
        sheet->cells[i].text[0] = ' ';
    return sheet->cells ? HEC_OK : HEC_ERR_NOMEM;
}

void hec_sheet_free(struct hec_sheet *sheet) {
    free(sheet->cells);
    sheet->cells = NULL;
}

/* One character of text, clean: its bytes in out, how many of text it is, and its columns: 0 combines with the one before. */
static size_t next(const struct hec_sheet *sheet, const char *text, char out[8], int *columns) {
    wchar_t wide = 0;
    mbstate_t state = {0};
    size_t bytes = hec_text_character((const unsigned char *)text, strnlen(text, 4));
    hec_text_clean(out, 8, text, bytes ? bytes : 1, sheet->utf8);
    size_t length = strlen(out);
    *columns = length <= 1 ? 1 : mbrtowc(&wide, out, length, &state) == length ? wcwidth(wide) : -1;
    if (*columns < 0 || *columns > 2) { /* the locale does not know it */
        strcpy(out, "?");
        *columns = 1;
    }
    return bytes ? bytes : 1;
}

int hec_sheet_width(const struct hec_sheet *sheet, const char *text) {
    char character[8];
    int sum = 0, columns;
    while (*text) {
        text += next(sheet, text, character, &columns);
        sum += columns;
    }
    return sum;
}

static struct hec_sheet_cell *cell_at(const struct hec_sheet *sheet, int row, int column) {
    bool inside = row >= 0 && row < sheet->rows && column >= 0 && column < sheet->columns;
    return inside ? &sheet->cells[row * sheet->columns + column] : NULL;
}

static void set(struct hec_sheet *sheet, int row, int column, enum hec_tone tone, const char *text) {
    struct hec_sheet_cell *cell = cell_at(sheet, row, column);
    if (!cell)
        return;
    strcpy(cell->text, text);
    cell->tone = (unsigned char)tone;
}

int hec_sheet_put(struct hec_sheet *sheet, int row, int column, int width, bool right, enum hec_tone tone,
                  const char *text) {
    char character[8];
    int used = 0, columns, length = hec_sheet_width(sheet, text);
    if (width > sheet->columns - column)
        width = sheet->columns - column;
    if (right && length < width)
        column += width - length;
    while (*text && used < width) {
        size_t bytes = next(sheet, text, character, &columns);
        struct hec_sheet_cell *before = cell_at(sheet, row, column + used - 1);
        if (columns == 0) {
            if (used > 0 && before && strlen(before->text) + strlen(character) < sizeof before->text)
                strcat(before->text, character);
        } else if (used + columns > width || (length > width && used + columns > width - 1)) {
            set(sheet, row, column + used, tone, cut[sheet->utf8]);
            return used + 1;
        } else {
            set(sheet, row, column + used, tone, character);
            if (columns == 2)
                set(sheet, row, column + used + 1, tone, "");
            used += columns;
        }
        text += bytes;
    }
    return used;
}

void hec_sheet_bar(struct hec_sheet *sheet, int row, int column, int width, enum hec_tone tone, double share) {
    int full = isnan(share) ? 0 : (int)lround(fmin(fmax(share, 0), 1) * width * LEVELS);
    for (int i = 0; i < width; i++) {
        int level = full - i * LEVELS;
        if (level >= LEVELS || (level > 0 && eighths[sheet->utf8][level][0] != ' '))
            set(sheet, row, column + i, tone, eighths[sheet->utf8][level < LEVELS ? level : LEVELS]);
        else
            set(sheet, row, column + i, HEC_TONE_DIM, rest[sheet->utf8]);
    }
}

void hec_sheet_course(struct hec_sheet *sheet, int row, int column, int width, enum hec_tone tone, const double *values,
                      int count, double most) {
    for (int i = 0; i < width && i < count; i++) {
        double value = values[count - 1 - i];
        double share = most > 0 && isfinite(value) ? fmin(fmax(value / most, 0), 1) : NAN;
        if (!isnan(share))
            set(sheet, row, column + width - 1 - i, tone, heights[sheet->utf8][lround(share * LEVELS)]);
    }
}

void hec_sheet_head(struct hec_sheet *sheet, int row) {
    for (int i = 0; cell_at(sheet, row, i); i++)
        cell_at(sheet, row, i)->bar = true;
}

void hec_sheet_print(const struct hec_sheet *sheet, struct hec_buf *out) {
    size_t end = out->length; /* of the last line that is not blank */
    for (int row = 0; row < sheet->rows; row++) {
        int last = sheet->columns - 1;
        while (last >= 0 && strcmp(cell_at(sheet, row, last)->text, " ") == 0)
            last--;
        for (int i = 0; i <= last; i++)
            hec_buf_puts(out, cell_at(sheet, row, i)->text);
        hec_buf_puts(out, "\n");
        if (last >= 0)
            end = out->length;
    }
    if (hec_buf_error(out) == HEC_OK && end < out->length) {
        out->length = end;
        out->data[end] = '\0';
    }
}
