#include "observe/tell.h"

#include <stdarg.h>
#include <stdio.h>

void hec_tell(struct hec_teller *teller, enum hec_event_kind kind, int64_t t_ns, const char *format, ...) {
    char text[256];
    va_list args;
    if (teller->left == 0)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (--teller->left == 0) {
        kind = HEC_EVENT_NOTE;
        snprintf(text, sizeof text, "further events of %s are left out", teller->of);
    }
    teller->sink->event(teller->sink->context, kind, HEC_DEVICE_NONE, t_ns, text);
}
