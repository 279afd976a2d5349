/* Events whose number is bounded: a fork bomb, or one that drops marks, must not fill the run file. */
#pragma once

#include "model/run.h"

struct hec_reporter {
    const struct hec_sink *sink;
    int left; /* events; the last one is a note instead: further events of `of` ("marks") are left out */
    const char *of;
};

/* Gives the sink an event of no device, the text cut at 255 bytes. */
void hec_reporter_event(struct hec_reporter *reporter, enum hec_event_kind kind, int64_t t_ns, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
