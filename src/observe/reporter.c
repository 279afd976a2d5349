#include "observe/reporter.h"

#include <stdarg.h>
#include <stdio.h>

void hec_reporter_event(struct hec_reporter *reporter, enum hec_event_kind kind, int64_t t_ns, const char *format,
                        ...) {
    char text[256];
    va_list args;
    if (reporter->left == 0)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (--reporter->left == 0) {
        kind = HEC_EVENT_NOTE;
        snprintf(text, sizeof text, "further events of %s are left out", reporter->of);
    }
    reporter->sink->event(reporter->sink->context, kind, HEC_DEVICE_NONE, t_ns, text);
}
