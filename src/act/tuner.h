/* `hec run --tune`: limits of power are tried, kept and taken back while the command runs, as prove/tune.h says, by the guard. It sits in
 * the sink of a session as what passes everything on. What it does is in the run file (events of kind TUNE).
 *
 *     hec_tuner_open(&options, &tuner, &why)       before the session
 *     options.through, .energy_every_ns: as the functions below say
 *     the session runs
 *     hec_tuner_close(tuner)                       before the guard is closed
 *
 * A thread of its own writes limits and cuts blocks that lose too much: a driver may take long, and steps come in by the session's
 * threads. */
#pragma once

#include "act/power_guard.h"
#include "model/run.h"

#define HEC_TUNER_ENERGY_NS (250 * INT64_C(1000000)) /* blocks take some seconds */

struct hec_tuner_options {
    struct hec_power_guard *guard;
    const char *simulated, *visible; /* as the guard's */
    double harm_most;                /* 0.01: trying may cost so much of the time that has passed */
    double slowdown_most;            /* 0.05: what is kept may be slower by so much */
    double seconds, steps;           /* that the command will take; 0: not known */
};

struct hec_tuner;

/* Reads what limits the devices take. HEC_ERR_UNSUPPORTED, HEC_ERR_NOTFOUND: there is nothing to set, with the reason. */
int hec_tuner_open(const struct hec_tuner_options *options, struct hec_tuner **out, struct hec_why *why);
/* For hec_session_options.through; the tuner is its context. */
const struct hec_sink *hec_tuner_through(void *tuner, const struct hec_sink *to);
/* When the command has ended: what it all came to goes to the run file. */
void hec_tuner_end(struct hec_tuner *tuner, const struct hec_sink *to, int64_t t_ns);
/* After the session: why nothing was tried; NULL: something was. */
const char *hec_tuner_idle(struct hec_tuner *tuner);
/* Limits are as they were once the guard is closed. NULL is fine. */
void hec_tuner_close(struct hec_tuner *tuner);
