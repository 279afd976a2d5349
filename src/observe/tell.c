#include "observe/tell.h"

#include <stdio.h>

void hec_tell(const struct hec_sink *sink, int *left, const char *of, enum hec_event_kind kind, int64_t t_ns,
              const char *format, va_list args) {
    char text[256];
    if (*left == 0)
        return;
    vsnprintf(text, sizeof text, format, args);
    if (--*left == 0) {
        kind = HEC_EVENT_NOTE;
        snprintf(text, sizeof text, "further events of %s are left out", of);
    }
    sink->event(sink->context, kind, HEC_DEVICE_NONE, t_ns, text);
}
