#include "base/clock.h"
#include "cli/output.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Progress on a terminal, for what takes longer than a second; silent anywhere else. */

#define QUIET_NS HEC_NS_PER_S
#define EVERY_NS (100 * HEC_NS_PER_MS)
#define WIDTH 79 /* one line of any terminal */

void hec_progress_begin(struct hec_progress *progress) {
    const char *term = getenv("TERM");
    *progress = (struct hec_progress){
        .begin_ns = hec_clock_mono_ns(),
        .terminal = isatty(STDERR_FILENO) == 1 && term && strcmp(term, "dumb") != 0,
    };
}

void hec_progress_show(struct hec_progress *progress, const char *what, double share) {
    if (!progress->terminal)
        return;
    int64_t now_ns = hec_clock_mono_ns();
    if (now_ns - progress->begin_ns < QUIET_NS || now_ns - progress->shown_ns < EVERY_NS)
        return;
    progress->shown_ns = now_ns;
    progress->shown = true;
    if (isnan(share))
        fprintf(stderr, "\r\033[K%.*s", WIDTH, what);
    else
        fprintf(stderr, "\r\033[K%3.0f %%  %.*s", 100 * fmin(fmax(share, 0), 1), WIDTH - 8, what);
    fflush(stderr);
}

void hec_progress_now(struct hec_progress *progress, const char *what) {
    progress->begin_ns = progress->shown_ns = INT64_MIN / 2;
    hec_progress_show(progress, what, NAN);
}

void hec_progress_end(struct hec_progress *progress) {
    if (progress->shown)
        fputs("\r\033[K", stderr);
    progress->shown = false;
}
