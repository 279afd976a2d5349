/* How a power sensor answers to a load that is switched on and off at known times: the time over which it averages, and how
 * late it is. `hec calibrate` plays the load. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct hec_sensor_reading {
    int64_t t_ns;
    double watts;
};

struct hec_sensor_response {
    int64_t window_ns; /* a reading is a mean of so much; of a filter the length of the mean that is most like it */
    int64_t delay_ns;  /* from the middle of that to the reading's time stamp */
    double r2;         /* of the readings' variance, as explained by it */
};

/* edges_ns: when the load began, ended, began ...; ascending. Tried are windows of 10 ms to 1.5 s that end 60 ms after to
 * 150 ms before the time stamp. False: fewer than 50 readings, or none explains 80 % of them. */
bool hec_sensor_response_fit(const int64_t *edges_ns, int edges, const struct hec_sensor_reading *readings, int count,
                             struct hec_sensor_response *out);
