#include "sim/spec.h"

#include "base/clock.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    int64_t cost_ns;
} calls[] = {
#define SIM_CALL(name, since, cost_ns) {#name, cost_ns},
#include "sim/nvml/calls.def"
#undef SIM_CALL
};

int64_t sim_call_cost_ns(enum sim_call call) {
    return calls[call].cost_ns;
}

/* SIM_CALL_COUNT if unknown */
static enum sim_call find_call(const char *name, unsigned length) {
    for (int i = 0; i < SIM_CALL_COUNT; i++)
        if (strlen(calls[i].name) == length && memcmp(calls[i].name, name, length) == 0)
            return (enum sim_call)i;
    return SIM_CALL_COUNT;
}

/* strtod alone would take signs, exponents, infinity and hexadecimal. */
bool sim_spec_number(const char *text, double maximum, double *value) {
    if (!*text || strlen(text) > 24 || text[strspn(text, "0123456789.")] != '\0')
        return false;
    char *end;
    *value = strtod(text, &end);
    return *end == '\0' && isfinite(*value) && *value <= maximum;
}

static bool parse_seconds(const char *text, int64_t *ns) {
    double s;
    if (!sim_spec_number(text, 1e8, &s))
        return false;
    *ns = (int64_t)(s * 1e9 + 0.5);
    return true;
}

static int parse_profile(char *word, struct sim_spec *spec, struct hec_why *why) {
    char *times = strrchr(word, 'x');
    spec->count = 1;
    if (times && times != word) {
        double count;
        if (!sim_spec_number(times + 1, SIM_DEVICE_MAX, &count) || count < 1 || count != floor(count))
            return hec_fail(why, HEC_ERR_USAGE, "'%.40s': after x comes a number of devices from 1 to %d, as in h200x8",
                            word, SIM_DEVICE_MAX);
        spec->count = (int)count;
        *times = '\0';
    }
    const struct sim_profile *profile = sim_profile_find(word);
    if (profile) {
        snprintf(spec->profile, sizeof spec->profile, "%s", profile->name);
        return HEC_OK;
    }
    char known[128] = "";
    for (int i = 0; i < sim_profile_count(); i++) {
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", sim_profile_at(i)->name);
    }
    return hec_fail(why, HEC_ERR_USAGE, "there is no simulated device '%.40s'; known are %s", word, known);
}

/* SECONDS[-UNTIL] */
static bool parse_span(char *text, struct sim_fault *fault) {
    char *until = strchr(text, '-');
    if (until)
        *until++ = '\0';
    return parse_seconds(text, &fault->at_ns) && (!until || parse_seconds(until, &fault->until_ns)) &&
           fault->until_ns > fault->at_ns;
}

/* SECONDS[-UNTIL][:DEVICE] */
static int parse_device_fault(const char *key, char *value, struct sim_spec *spec, struct sim_fault *fault,
                              struct hec_why *why) {
    double device = 0, most = fault->kind == SIM_FAULT_NOMIG ? SIM_MIG_MAX - 1 : spec->count - 1;
    char *colon = strchr(value, ':');
    if (colon)
        *colon++ = '\0';
    bool ends = fault->kind == SIM_FAULT_LOST || fault->kind == SIM_FAULT_NOMIG;
    if (!parse_span(value, fault) || (!ends && fault->until_ns != INT64_MAX) ||
        (colon && (!sim_spec_number(colon, most, &device) || device != floor(device))))
        return hec_fail(why, HEC_ERR_USAGE, "'%s@%.40s' should be %s@SECONDS or %s@SECONDS:DEVICE, as in %s@2", key,
                        value, key, key, key);
    fault->device = (int)device;
    return HEC_OK;
}

/* NUMBER@SECONDS[:DEVICE] */
static int parse_xid(char *value, struct sim_spec *spec, struct sim_fault *fault, struct hec_why *why) {
    char *at = strchr(value, '@'), key[16];
    double number = 0;
    if (at)
        *at++ = '\0';
    if (!at || !sim_spec_number(value, 999, &number) || number < 1 || number != floor(number))
        return hec_fail(why, HEC_ERR_USAGE, "'xid=%.40s' should be xid=NUMBER@SECONDS, as in xid=79@2", value);
    fault->xid = (int)number;
    snprintf(key, sizeof key, "xid=%d", fault->xid);
    return parse_device_fault(key, at, spec, fault, why);
}

/* FUNCTION[:MS][@SECONDS[-UNTIL]] */
static int parse_call_fault(const char *key, char *value, struct sim_fault *fault, struct hec_why *why) {
    const char *form = fault->kind == SIM_FAULT_SLOW ? "FUNCTION:MILLISECONDS" : "FUNCTION";
    char *at = strchr(value, '@');
    if (at) {
        *at++ = '\0';
        if (!parse_span(at, fault))
            return hec_fail(why, HEC_ERR_USAGE, "%s: '%.40s' is not a number of seconds", key, at);
    }
    char *colon = strchr(value, ':');
    if (colon)
        *colon++ = '\0';
    double ms = 0;
    if ((fault->kind == SIM_FAULT_SLOW) != (colon != NULL) || (colon && !sim_spec_number(colon, 60000, &ms)))
        return hec_fail(why, HEC_ERR_USAGE, "'%s=%.80s' should be %s=%s or %s=%s@SECONDS (milliseconds up to 60000)",
                        key, value, key, form, key, form);
    fault->delay_ns = (int64_t)(ms * (double)HEC_NS_PER_MS);
    fault->call = find_call(value, (unsigned)strlen(value));
    if (fault->call == SIM_CALL_COUNT)
        return hec_fail(why, HEC_ERR_USAGE, "%s: the simulated driver has no function '%.80s'", key, value);
    return HEC_OK;
}

static int add_fault(enum sim_fault_kind kind, const char *key, char *value, struct sim_spec *spec,
                     struct hec_why *why) {
    struct sim_fault fault = {.kind = kind, .call = SIM_CALL_COUNT, .until_ns = INT64_MAX};
    if (spec->fault_count == SIM_FAULT_MAX)
        return hec_fail(why, HEC_ERR_USAGE, "more than %d faults", SIM_FAULT_MAX);
    int err = kind == SIM_FAULT_XID  ? parse_xid(value, spec, &fault, why)
              : kind < SIM_FAULT_XID ? parse_device_fault(key, value, spec, &fault, why)
                                     : parse_call_fault(key, value, &fault, why);
    if (err == HEC_OK)
        spec->faults[spec->fault_count++] = fault;
    return err;
}

static int parse_driver(const char *value, struct sim_spec *spec, struct hec_why *why) {
    spec->driver = strcmp(value, "450") == 0 ? 450 : strcmp(value, "580") == 0 ? 580 : 0;
    return spec->driver ? HEC_OK : hec_fail(why, HEC_ERR_USAGE, "driver=%.40s: simulated are 450 and 580", value);
}

static int parse_watts(const char *key, const char *value, double maximum, int32_t *mw, struct hec_why *why) {
    double watts;
    if (!sim_spec_number(value, maximum, &watts))
        return hec_fail(why, HEC_ERR_USAGE, "%s=%.40s: should be a number of watts, at most %.0f", key, value, maximum);
    *mw = (int32_t)(watts * 1000 + 0.5);
    return HEC_OK;
}

/* WINDOW_MS[:LAG_MS] */
static int parse_sensor(char *value, struct sim_spec *spec, struct hec_why *why) {
    double window = 0, lag = 0;
    char *colon = strchr(value, ':');
    if (colon)
        *colon++ = '\0';
    if (!sim_spec_number(value, 2000, &window) || window < 1 || (colon && !sim_spec_number(colon, 500, &lag)))
        return hec_fail(why, HEC_ERR_USAGE,
                        "'sensor=%.40s' should be sensor=WINDOW or sensor=WINDOW:LAG, as in sensor=100:20 "
                        "(milliseconds, 1 to 2000 and up to 500)",
                        value);
    spec->sensor_window_ns = (int64_t)(window * (double)HEC_NS_PER_MS);
    spec->sensor_lag_ns = (int64_t)(lag * (double)HEC_NS_PER_MS);
    return HEC_OK;
}

static int parse_lose(const char *value, struct sim_spec *spec, struct hec_why *why) {
    double one_in;
    if (!sim_spec_number(value, 1e6, &one_in) || one_in < 2 || one_in != floor(one_in))
        return hec_fail(why, HEC_ERR_USAGE, "lose=%.40s: one power sample in so many is lost, from 2 on", value);
    spec->lose = (int)one_in;
    return HEC_OK;
}

static int parse_limit(const char *key, const char *value, const struct sim_spec *spec, int32_t *mw,
                       struct hec_why *why) {
    const struct sim_profile *profile = sim_profile_find(spec->profile);
    int err = parse_watts(key, value, profile->power_max_mw / 1000.0, mw, why);
    if (err == HEC_OK && *mw < profile->power_min_mw)
        return hec_fail(why, HEC_ERR_USAGE, "%s=%.40s: the %s takes %d to %d W", key, value, spec->profile,
                        profile->power_min_mw / 1000, profile->power_max_mw / 1000);
    return err;
}

static const struct sim_mig_part mig_parts[] = {
#define SIM_MIG(slices, memory_eighths, sms) {slices, memory_eighths, sms},
#include "sim/mig.def"
#undef SIM_MIG
};

const struct sim_mig_part *sim_mig_part(int slices) {
    for (size_t i = 0; i < sizeof mig_parts / sizeof mig_parts[0]; i++)
        if (mig_parts[i].slices == slices)
            return &mig_parts[i];
    return NULL;
}

/* 0, 1 or SLICESg[+SLICESg...] */
static int parse_mig(const char *value, struct sim_spec *spec, struct hec_why *why) {
    int slices = 0, eighths = 0;
    spec->mig = 0;
    if (strcmp(value, "0") == 0)
        return HEC_OK;
    const char *at = strcmp(value, "1") == 0 ? "3g+3g" : value;
    for (;; at += 3) {
        const struct sim_mig_part *part = *at && at[1] == 'g' ? sim_mig_part(*at - '0') : NULL;
        if (!part || (at[2] && at[2] != '+') || spec->mig == SIM_MIG_MAX)
            break;
        spec->mig_slices[spec->mig++] = part->slices;
        slices += part->slices;
        eighths += part->memory_eighths;
        if (!at[2])
            return slices <= SIM_MIG_SLICES && eighths <= 8
                       ? HEC_OK
                       : hec_fail(why, HEC_ERR_USAGE, "mig=%.40s: more than a device has (7 slices, 8 of memory)",
                                  value);
    }
    return hec_fail(why, HEC_ERR_USAGE,
                    "mig=%.40s: should be mig=1, or parts of 1g, 2g, 3g, 4g or 7g, as in mig=3g+2g+1g", value);
}

static int parse_state(const char *value, struct sim_spec *spec, struct hec_why *why) {
    if (value[0] != '/' || strlen(value) >= sizeof spec->state)
        return hec_fail(why, HEC_ERR_USAGE, "state=%.40s: should be an absolute path of at most %zu characters", value,
                        sizeof spec->state - 1);
    snprintf(spec->state, sizeof spec->state, "%s", value);
    return HEC_OK;
}

static int parse_key(char *word, struct sim_spec *spec, struct hec_why *why) {
    char *value = strpbrk(word, "=@");
    char separator = value ? *value : '\0';
    if (value)
        *value++ = '\0';
    if (separator == '@') {
        if (strcmp(word, "lost") == 0)
            return add_fault(SIM_FAULT_LOST, "lost", value, spec, why);
        if (strcmp(word, "reset") == 0)
            return add_fault(SIM_FAULT_RESET, "reset", value, spec, why);
        if (strcmp(word, "nomig") == 0)
            return add_fault(SIM_FAULT_NOMIG, "nomig", value, spec, why);
    } else if (separator == '=') {
        if (strcmp(word, "slow") == 0)
            return add_fault(SIM_FAULT_SLOW, "slow", value, spec, why);
        if (strcmp(word, "hang") == 0)
            return add_fault(SIM_FAULT_HANG, "hang", value, spec, why);
        if (strcmp(word, "fail") == 0)
            return add_fault(SIM_FAULT_FAIL, "fail", value, spec, why);
        if (strcmp(word, "xid") == 0)
            return add_fault(SIM_FAULT_XID, "xid", value, spec, why);
        if (strcmp(word, "driver") == 0)
            return parse_driver(value, spec, why);
        if (strcmp(word, "noise") == 0)
            return parse_watts("noise", value, 1000, &spec->noise_mw, why);
        if (strcmp(word, "sensor") == 0)
            return parse_sensor(value, spec, why);
        if (strcmp(word, "lose") == 0)
            return parse_lose(value, spec, why);
        if (strcmp(word, "cap") == 0)
            return parse_limit("cap", value, spec, &spec->cap_mw, why);
        if (strcmp(word, "outside") == 0)
            return parse_limit("outside", value, spec, &spec->outside_mw, why);
        if (strcmp(word, "state") == 0)
            return parse_state(value, spec, why);
        if (strcmp(word, "mig") == 0)
            return parse_mig(value, spec, why);
        if (strcmp(word, "clock") == 0 && (strcmp(value, "real") == 0 || strcmp(value, "virtual") == 0)) {
            spec->virtual_time = *value == 'v';
            return HEC_OK;
        }
        bool known;
        int err = sim_spec_parse_trace(word, value, &spec->trace, &known, why);
        if (known)
            return err;
    } else if (strcmp(word, "nopower") == 0) {
        spec->no_power = true;
        return HEC_OK;
    } else if (strcmp(word, "norights") == 0) {
        spec->no_rights = true;
        return HEC_OK;
    }
    return hec_fail(
        why, HEC_ERR_USAGE,
        "'%.40s%.1s%.40s' is not known; known are lost@S, reset@S, nomig@S, xid=N@S, slow=FUNCTION:MS, hang=FUNCTION, "
        "fail=FUNCTION, nopower, noise=W, sensor=MS[:MS], lose=N, cap=W, outside=W, norights, state=PATH, driver=450, "
        "mig=PARTS, clock=virtual, "
        "cupti=VERSION, badrecord=KIND, nobuffer=N, slowflush=MS, cuptiskew=PPM, tracecost=NS, holder=NAME",
        word, separator ? (char[]){separator, '\0'} : "", value ? value : "");
}

int sim_spec_parse(const char *text, struct sim_spec *spec, struct hec_why *why) {
    char copy[SIM_SPEC_LENGTH_MAX];
    *spec = (struct sim_spec){.count = 1, .driver = 580, .trace = {.cupti = 130, .cost_ns = SIM_TRACE_COST_NS}};
    if (strlen(text) >= sizeof copy)
        return hec_fail(why, HEC_ERR_USAGE, "the description of the simulated device is longer than %zu characters",
                        sizeof copy - 1);
    memcpy(copy, text, strlen(text) + 1);
    char *rest = copy;
    int err = parse_profile(strsep(&rest, ","), spec, why);
    while (err == HEC_OK && rest)
        err = parse_key(strsep(&rest, ","), spec, why);
    if (err == HEC_OK && spec->mig && !sim_profile_find(spec->profile)->has_counter)
        return hec_fail(why, HEC_ERR_USAGE, "mig: the %s cannot be divided", spec->profile);
    return err;
}

const char *sim_spec_library(const struct sim_spec *spec) {
    return spec->driver == 450 ? "sim/old/libnvidia-ml.so.1" : "sim/libnvidia-ml.so.1";
}
