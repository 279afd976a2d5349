/* What the command prints, read beside whom it is for. Nothing about it changes but for this: where it goes to a pipe, that pipe
 * is another one, whose bytes a process of its own passes on to the first.
 *
 * - a file: hec reads it, as `tail -f` does
 * - a pipe: the process passes bytes on as they come (splice), and gives hec a copy that may be lost where hec is late (tee). It lives
 *   until nobody writes any more, also where hec was killed, so that descendants go on printing. Where nobody reads the first pipe
 *   any more, the command gets the same error or signal as without, a write later. Both streams in one pipe stay in one, in order.
 * - anything else (a terminal, a socket, /dev/null) is left alone, and not read */
#pragma once

#include "base/error.h"
#include "observe/collector.h"

#include <stdbool.h>

struct hec_printed_output {
    struct hec_observe_printed from[HEC_OBSERVE_PRINTED_MAX];
    int count;
    bool also;      /* stderr goes where stdout goes */
    char said[160]; /* "stdout (stderr: a terminal, which is not read)" */
};

/* Of this process's stdout and stderr, which the command will have; of a file that both of its streams go to instead, where that is not 0.
 * HEC_ERR_USAGE where neither can be read. Before signals are
 * taken over and before this process becomes the reaper of what it starts. */
int hec_printed_begin(struct hec_printed_output *output, int file, struct hec_why *why);
/* The command has ended: wait, for a while, until hec has its copy of all that was printed. */
void hec_printed_settle(const struct hec_printed_output *output);
/* This process writes to where it did before. */
void hec_printed_end(struct hec_printed_output *output);
