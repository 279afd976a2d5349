/* What the readers of the formats share. */
#pragma once

#include "observe/grid/signal.h"

/* A signal whose values are being read, in the order of the file. */
struct hec_signal_rows {
    struct hec_signal *out;
    size_t capacity;
    bool carbon;
};

/* where: "line 12", for the sentence. NAN: no value at that time. */
int hec_signal_add(struct hec_signal_rows *rows, const char *where, const char *time, double value,
                   struct hec_why *why);
/* Each value holds until the next one, and no longer than period_s (0: than the shortest time between two). */
int hec_signal_finish(struct hec_signal_rows *rows, int64_t period_s, struct hec_why *why);

/* A CSV file of Electricity Maps, or of prices. */
int hec_signal_table(struct hec_signal_rows *rows, const char *bytes, size_t length, struct hec_why *why);
/* An answer of WattTime's API, version 3. */
int hec_signal_watttime(struct hec_signal_rows *rows, const char *bytes, size_t length, struct hec_why *why);
