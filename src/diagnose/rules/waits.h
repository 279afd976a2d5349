/* Inside rules/: the time in which a device waits for the host, divided among the causes so that no second is claimed twice.
 *
 * gaps.h says which cause owns what of each gap; here it is of all of the steady part of the run, traced or not. */
#pragma once

#include "diagnose/rules/facts.h"
#include "diagnose/meter/use.h"

enum hec_waits_copies { HEC_WAITS_BULK, HEC_WAITS_CHATTY, HEC_WAITS_ROUND_TRIPS, HEC_WAITS_PAGEABLE };

/* WHOLE: no steady part is separated from set-up, and all of the run is judged; LOOP: by calls alone (states/inferred/loop.c). */
enum hec_waits_part { HEC_WAITS_WHOLE, HEC_WAITS_STEPS, HEC_WAITS_LOOP };

struct hec_waits {
    bool known;                 /* false: not traced */
    enum hec_waits_part steady; /* what is judged */
    double run_s;               /* what savings are fractions of */
    double whole_s;             /* of the part that is judged, > 0 */
    double coverage;            /* of it, traced */
    double idle_s;
    double owned_s[HEC_CAUSE_COUNT]; /* by cause; add up to idle_s and copy, less startup, tail, requests and unknown */
    uint32_t states[HEC_CAUSE_COUNT];                     /* of which states that is */
    double least[HEC_CAUSE_COUNT], most[HEC_CAUSE_COUNT]; /* what it may be, by that; 1 where the device was seen */
    /* Idle power with a context while the program runs: every second saved is one of these. */
    double watts, watts_low, watts_high; /* NAN unknown */
    bool estimated;
    enum hec_waits_copies copies;
    /* Of a step (of a second where there are no steps). */
    enum hec_per per;
    double work; /* steps in the part that is judged, or its seconds */
    double launches, launch_us, syncs, reads, small_copies, round_trips, allocs, alloc_s;
    double compute_s, data_s; /* of a step or second */
    double
        beside_s; /* of the device's work: what the program's own code behind its launches would hide, were they made at once */
    double
        awaited_s; /* of the program's own code, and of calls in JAX: what would be hidden, had the host not waited for the device before */
    double
        covered_s; /* of the program's own code beside the device's work: what goes with it where a number is read behind it */
    double
        late_s; /* of what the other causes have: launching behind waits, which launching at once does away with too */
    double rate_bytes_per_s; /* of pageable copies while they run; NAN without */
    double link_bytes_per_s; /* peak of the link; NAN unknown */
};

void hec_waits_gather(const struct hec_facts *facts, struct hec_waits *out);

/* Share of the judged part that a cause owns, 0..1; 0 without a trace. */
double hec_waits_share(const struct hec_waits *waits, enum hec_cause cause);
/* Sets savings for "these parts [low, best, high] of what the cause owns go away", states, per and `estimated`. */
void hec_waits_save(const struct hec_facts *facts, const struct hec_waits *waits, enum hec_cause cause, double low,
                    double best, double high, struct hec_finding *out);
/* Adds savings for "these parts of what that cause owns go away too"; where either is not known it stays as it is. */
void hec_waits_save_more(const struct hec_facts *facts, const struct hec_waits *waits, enum hec_cause cause, double low,
                         double best, double high, struct hec_finding *out);
/* `most`, or less where another cause owns more, or where set-up is not separated from the rest. */
double hec_waits_confidence(const struct hec_waits *waits, enum hec_cause cause, double most);
/* Gathers, and where the finding's cause owns that share or more of the judged part, says so: title, what it takes of a step and
 * what that costs, confidence and savings by the rule. What a rule knows more of comes after it. */
bool hec_waits_claim(const struct hec_facts *facts, double least, struct hec_waits *waits, struct hec_finding *out);
/* How many cores the program uses, of those that it may; returns how many are idle, NAN unknown. */
double hec_waits_report_cores(const struct hec_facts *facts, struct hec_finding *out);

/* What telemetry says of the time in use: transfers over the bus, or the kernels' use of the device. */
void hec_waits_report_use(const struct hec_facts *facts, bool transfers, struct hec_finding *out);

/* What the device draws while it waits, with a context; NAN unknown. */
double hec_waits_watts(const struct hec_facts *facts);

/* Savings of these parts of so many seconds, at idle power. Without a trace too. */
void hec_waits_save_seconds(const struct hec_facts *facts, double seconds, double low, double best, double high,
                            struct hec_finding *out);
/* Without a trace: what of the time in use the device was not busy (0..1), as fractions of the run's, and the joules of it at
 * idle power; a fix saves [0, best, 1] of it. */
void hec_waits_save_telemetry(const struct hec_facts *facts, double busy, double best, struct hec_finding *out);
