/* hec run --when: wait until it is true by the files and the clock (act/off_peak.h); and what the files say of the run's carbon. */
#pragma once

#include "act/off_peak.h"
#include "cli/cli.h"
#include "model/run.h"

struct hec_waiting {
    struct hec_off_peak off_peak;
    const char *when; /* what --when said; NULL: nothing is waited for */
    bool ends;        /* --until: at until_s the command runs in any case */
    bool quiet;
    int64_t until_s;
    char waited[512]; /* what was waited for, and how long; "": nothing was */
};

/* --when, --carbon-file, --price-file, --until, --check: the files are read. An error after printing a sentence. */
int hec_waiting_open(const struct hec_args *args, struct hec_waiting *waiting);
void hec_waiting_close(struct hec_waiting *waiting);

/* --check: prints one line. The exit status: 0 true, 1 false, 2 not known. */
int hec_waiting_check(const struct hec_waiting *waiting);

/* Returns when it is true, or at --until. Before any thread starts. SIGINT, SIGTERM and SIGHUP end this process by themselves. */
void hec_waiting_wait(struct hec_waiting *waiting);

/* What was waited for, as an event of the run file. */
void hec_waiting_record(const struct hec_waiting *waiting, const struct hec_sink *sink);
/* The carbon of the time between, where the files have all of it: hec_session_options.at_end, whose context is the waiting. */
void hec_waiting_carbon(void *context, const struct hec_sink *sink, int64_t start_ns, int64_t end_ns);
