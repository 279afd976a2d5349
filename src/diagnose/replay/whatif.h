/* What a run would take with edits of its schedule: the replay, checked against the recording, in seconds and joules. */
#pragma once

#include "diagnose/replay/lanes.h"
#include "diagnose/replay/replay.h"
#include "diagnose/result.h"

#define HEC_WHATIF_EDITS_MAX 16
#define HEC_WHATIF_COLUMNS 60 /* of a step that is drawn */

/* A question: edits that hold together; count 0: the schedule as it was recorded. */
struct hec_whatif_question {
    struct hec_whatif_edit {
        enum hec_edit edit;
        double value; /* NAN: the edit's own */
    } edits[HEC_WHATIF_EDITS_MAX];
    int count;
};

struct hec_whatif_answer {
    struct hec_replay replay;
    /* Share of the stretch's time that is saved, against the unchanged replay, and of its joules (power.h; NAN unknown): what is
     * replayed, which may be < 0, and the interval that proofs give (power.h), for edits together the widest of theirs. */
    double seconds_replayed, joules_replayed;
    struct hec_saving seconds, joules;
};

struct hec_whatif {
    int64_t calls, guessed;
    int64_t steps;                /* of the stretch; 0: none are known */
    double from_s, to_s;          /* the stretch, since the start of the run */
    bool imported;                /* recorded by a profiler, which slows the host */
    bool cut;                     /* the replay is of its beginning */
    double error;                 /* of the unchanged replay: its time by the recorded, less 1 */
    bool apart;                   /* its processes were recorded at different times */
    int64_t communication, alone; /* kernels; of them those without a counterpart in another process */
    bool trusted;                 /* |error| <= HEC_REPLAY_TRUST, and not apart */
    struct hec_whatif_answer unchanged;
    struct hec_whatif_answer *answers; /* one a question; malloc'ed */
    size_t count;
    struct hec_step_lanes step, edited; /* where there is one question: a step as it was, and with its edits */
};

/* summary: of the same input, whose schedule it left there: for the watts. 0; HEC_ERR_UNSUPPORTED: no part of the run can be
 * replayed; HEC_ERR_NOMEM, or what the input returned. */
int hec_whatif_ask(const struct hec_summary_input *input, const struct hec_summary *summary,
                   const struct hec_whatif_question *questions, size_t count, struct hec_whatif *out,
                   struct hec_why *why);
void hec_whatif_free(struct hec_whatif *whatif);
