#include "model/run.h"

#include <string.h>

static const char *const event_names[] = {
#define HEC_EVENT(id, name, meaning) name,
#include "model/event.def"
#undef HEC_EVENT
};

const char *hec_event_name(enum hec_event_kind kind) {
    return event_names[kind];
}

const char *hec_vendor_name(enum hec_vendor vendor) {
    static const char *const names[] = {
#define HEC_VENDOR(id, name) name,
#include "model/vendor.def"
#undef HEC_VENDOR
    };
    return names[vendor];
}

enum hec_event_kind hec_event_find(const char *name) {
    for (int i = 0; i < HEC_EVENT_COUNT; i++)
        if (strcmp(event_names[i], name) == 0)
            return (enum hec_event_kind)i;
    return HEC_EVENT_COUNT;
}
