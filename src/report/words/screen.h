/* Inside src/report: the first screen in words. It says what was found and what to do about it, in the same rows and the same order
 * on a terminal, in Markdown and on a page, and takes at most HEC_SCREEN_LINES lines. What it rests on stands below it. */
#pragma once

#include "diagnose/result.h"
#include "report/page.h"

enum { HEC_SCREEN_LINES = 15, HEC_SCREEN_CODE_LINES = 4, HEC_SCREEN_TEXT = 768 };

/* SCREEN(id, name, tone): rows in their order; the names are stable, and `hec explain words` has each. */
enum hec_screen_id {
#define HEC_SCREEN(id, name, tone) HEC_SCREEN_##id,
#include "report/words/screen.def"
    HEC_SCREEN_ROWS
};

struct hec_screen_row {
    enum hec_screen_id id;
    char text[HEC_SCREEN_TEXT];
    const char *code; /* of DO: what to paste, lines ended by \n; NULL: none, or more than HEC_SCREEN_CODE_LINES */
};

struct hec_screen {
    struct hec_screen_row row[HEC_SCREEN_ROWS]; /* those that have something to say */
    int count;
};

const char *hec_screen_name(enum hec_screen_id id);
/* style: its utf8, and brief: at the end of `hec run`, where the report is what to ask for next. file: as the reader would name it;
 * "": it has none. */
void hec_screen_of(const struct hec_summary *summary, const struct hec_report_style *style, const char *file,
                   struct hec_screen *out);
/* The command and these rows; what does not fit into `most` lines is cut, the answer last. Whether there was room for the
 * code. */
bool hec_screen_page(struct hec_page *page, const struct hec_summary *summary, const struct hec_screen *screen,
                     int most);
void hec_screen_markdown(struct hec_buf *out, const struct hec_summary *summary, const struct hec_screen *screen);
