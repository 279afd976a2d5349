/* The meter of a run: its telemetry, from which the other files of this folder say what devices took.
 *
 * Each series is read from the input once, and kept for whoever asks for it later: packed, 5 to 8 bytes a reading, and no more
 * than HEC_METER_KEPT_BYTES of all series together (some 4 hours of one device). What does not fit is read again each time,
 * so that memory does not grow with the run. Results are the same. One thread at a time. */
#pragma once

#include "diagnose/input.h"
#include "diagnose/meter/stat.h"

#define HEC_METER_KEPT_BYTES ((size_t)16 << 20)

/* First and last valid reading and the largest value: for counters and totals. count 0: nothing. */
struct hec_range {
    int64_t first_ns, last_ns, first, last, maximum;
    int64_t count;
};

struct hec_meter {
    const struct hec_summary_input *input;
    int64_t end_ns; /* of the run; 0: not known yet */
    struct hec_meter_series {
        enum hec_metric metric;
        int32_t subject;
        struct hec_range range;
        uint8_t *bytes; /* malloc'ed; NULL with readings: there was no room */
        size_t size, capacity, readings;
        int64_t last_ns, last;
    } * series;
    size_t series_count, series_capacity, kept_bytes;
};

void hec_meter_open(struct hec_meter *meter, const struct hec_summary_input *input, int64_t end_ns);
void hec_meter_close(struct hec_meter *meter); /* zeroed is fine */

/* Called for every reading in time order; valid is false where the value is missing. */
typedef void (*hec_reading_visitor)(void *context, int64_t t_ns, int64_t value, bool valid);

/* All of a series; an absent one is empty. Times out of any plausible run (beyond +-36 years) are left out, so that a damaged
 * file cannot overflow the arithmetic. 0 or a negative error. */
int hec_meter_read(struct hec_meter *meter, enum hec_metric metric, int32_t subject, hec_reading_visitor visit,
                   void *context, struct hec_why *why);
/* The same as steps (stat.h) of the numbers as they are stored, to the end of the run. usual_ns: their spacing; may be NULL. */
int hec_meter_steps(struct hec_meter *meter, enum hec_metric metric, int32_t subject, hec_step_visitor visit,
                    void *context, double *usual_ns, struct hec_why *why);
int hec_meter_range(struct hec_meter *meter, enum hec_metric metric, int32_t subject, struct hec_range *range,
                    struct hec_why *why);

/* Valid readings of a device's energy counter, each with its slack: the value became current within so many microseconds
 * before t_ns. HEC_SLACK_UNKNOWN: nothing says when. Where a value was looked at again at the same instant there are several:
 * the first, and the narrowest. */
#define HEC_SLACK_UNKNOWN INT64_MIN
struct hec_counter_reading {
    int64_t t_ns, mj, slack_us, narrowest_us;
};
typedef void (*hec_counter_visitor)(void *context, const struct hec_counter_reading *reading);
int hec_meter_counter(struct hec_meter *meter, int device, hec_counter_visitor visit, void *context,
                      struct hec_why *why);

/* What a device has taken so far, as its readings come: for the line of a run that goes on. By the counter; where there is
 * none, the power's integral, which is an estimate. */
struct hec_running_joules { /* zeroed at first */
    bool counted;
    int64_t first_mj, last_mj; /* of the counter */
    int64_t last_power_ns;
    double power_j;
};

void hec_running_counter(struct hec_running_joules *running, int64_t mj);
void hec_running_power(struct hec_running_joules *running, int64_t t_ns, double watts);
double hec_running_joules(const struct hec_running_joules *running); /* NAN: nothing was read */
