/* hec run --live: what the run costs so far, in one line, while the command runs.
 *
 * The command's own output goes past hec, which therefore cannot know where its cursor is: a line of ours on the same terminal would fall
 * into a progress bar, or be overwritten by it. So on a terminal that the command may write to, the line is the window's title, which is no
 * part of the screen. On a terminal or in a file of its own it is a line there. */
#pragma once

#include "base/error.h"
#include "model/run.h"

struct hec_live;

/* where: a terminal or a file that is appended to; NULL or "": the terminal that there is. HEC_ERR_UNSUPPORTED with a sentence where there
 * is none; then nothing is shown. */
int hec_live_open(const char *where, int64_t begin_ns, struct hec_live **out, struct hec_why *why);
/* A sink that passes everything on and sums up: for hec_session_options.through. Called once; the line is shown from now on. */
const struct hec_sink *hec_live_through(void *live, const struct hec_sink *to);
/* The line is taken away: nothing of ours is left on a terminal. The sink goes on passing. */
void hec_live_end(struct hec_live *live);
/* After the end, where nothing uses the sink any more. */
void hec_live_free(struct hec_live *live);

/* Inside: what is summed up, and where it is shown. */
#define HEC_LIVE_TEXT 512
void hec_live_line(struct hec_live *live, int64_t now_ns, char text[HEC_LIVE_TEXT]);

enum hec_live_how { HEC_LIVE_TITLE, HEC_LIVE_LINE, HEC_LIVE_FILE };
struct hec_live_place {
    int fd;
    enum hec_live_how how;
    bool shown;
};
int hec_live_place_open(const char *where, struct hec_live_place *out, struct hec_why *why);
void hec_live_place_show(struct hec_live_place *place, const char *text);
void hec_live_place_close(struct hec_live_place *place);
