/* The keys of a specification that concern tracing. */
#include "sim/spec.h"

#include "base/clock.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int version;
    const char *folder;
} versions[] = {
    {"11.8", 118, "sim/cupti-11.8"}, {"12", 128, "sim/cupti-12"}, {"13", 130, "sim/cupti-13"}, {"none", 0, NULL}};

static const char *const bad_names[SIM_BAD_COUNT] = {"start", "order", "kind", "device", "name", "truncated"};

const char *sim_spec_cupti_folder(const struct sim_spec *spec) {
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++)
        if (versions[i].version == spec->trace.cupti)
            return versions[i].folder;
    return NULL;
}

static int parse_version(const char *value, struct sim_trace_spec *trace, struct hec_why *why) {
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++)
        if (strcmp(versions[i].name, value) == 0) {
            trace->cupti = versions[i].version;
            return HEC_OK;
        }
    return hec_fail(why, HEC_ERR_USAGE, "cupti=%.40s: simulated are 11.8, 12, 13 and none", value);
}

/* A whole number from 1. */
static bool parse_count(const char *text, int *count) {
    double number;
    if (!sim_spec_number(text, 1e9, &number) || number < 1 || number != floor(number))
        return false;
    *count = (int)number;
    return true;
}

/* KIND[:N] */
static int parse_bad(char *value, struct sim_trace_spec *trace, struct hec_why *why) {
    char *colon = strchr(value, ':');
    int every = 100;
    if (colon)
        *colon++ = '\0';
    for (int i = 0; i < SIM_BAD_COUNT; i++)
        if (strcmp(bad_names[i], value) == 0 && (!colon || parse_count(colon, &every))) {
            trace->bad[i] = every;
            return HEC_OK;
        }
    return hec_fail(
        why, HEC_ERR_USAGE,
        "'badrecord=%.40s' should be badrecord=KIND or badrecord=KIND:N (one in N); kinds are start, order, "
        "kind, device, name, truncated",
        value);
}

/* PPM[:MILLISECONDS] */
static int parse_skew(char *value, struct sim_trace_spec *trace, struct hec_why *why) {
    char *colon = strchr(value, ':');
    double ppm, ms = 0;
    if (colon)
        *colon++ = '\0';
    if (!sim_spec_number(value, 10000, &ppm) || (colon && !sim_spec_number(colon, 1e9, &ms)))
        return hec_fail(why, HEC_ERR_USAGE, "'cuptiskew=%.40s' should be cuptiskew=PPM or cuptiskew=PPM:MILLISECONDS",
                        value);
    trace->skew_ppm = (int64_t)ppm;
    trace->offset_ns = (int64_t)(ms * (double)HEC_NS_PER_MS);
    return HEC_OK;
}

/* NAME[:SECONDS] */
static int parse_holder(char *value, struct sim_trace_spec *trace, struct hec_why *why) {
    char *colon = strchr(value, ':');
    double seconds = 0;
    if (colon)
        *colon++ = '\0';
    if (!*value || strlen(value) >= SIM_HOLDER_MAX || (colon && !sim_spec_number(colon, 1e6, &seconds)))
        return hec_fail(why, HEC_ERR_USAGE, "'holder=%.60s' should be holder=NAME or holder=NAME:SECONDS", value);
    snprintf(trace->holder, sizeof trace->holder, "%s", value);
    trace->holder_until_ns = (int64_t)(seconds * 1e9);
    return HEC_OK;
}

static int parse_span(const char *key, const char *value, double maximum, double unit_ns, int64_t *ns,
                      struct hec_why *why) {
    double number;
    if (!sim_spec_number(value, maximum, &number))
        return hec_fail(why, HEC_ERR_USAGE, "%s=%.40s: should be a number from 0 to %.0f", key, value, maximum);
    *ns = (int64_t)(number * unit_ns);
    return HEC_OK;
}

int sim_spec_parse_trace(const char *key, char *value, struct sim_trace_spec *trace, bool *known, struct hec_why *why) {
    *known = true;
    if (strcmp(key, "cupti") == 0)
        return parse_version(value, trace, why);
    if (strcmp(key, "badrecord") == 0)
        return parse_bad(value, trace, why);
    if (strcmp(key, "nobuffer") == 0)
        return parse_count(value, &trace->no_buffer)
                   ? HEC_OK
                   : hec_fail(why, HEC_ERR_USAGE, "nobuffer=%.40s: should be N, for one record in N", value);
    if (strcmp(key, "slowflush") == 0)
        return parse_span(key, value, 60000, 1e6, &trace->slow_flush_ns, why);
    if (strcmp(key, "tracecost") == 0)
        return parse_span(key, value, 1e6, 1, &trace->cost_ns, why);
    if (strcmp(key, "cuptiskew") == 0)
        return parse_skew(value, trace, why);
    if (strcmp(key, "holder") == 0)
        return parse_holder(value, trace, why);
    *known = false;
    return HEC_OK;
}
