#include "model/run.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const event_names[] = {
#define HEC_EVENT(id, name, meaning) name,
#include "model/event.def"
#undef HEC_EVENT
};

void hec_sink_meta(const struct hec_sink *sink, const char *key, const char *format, ...) {
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    sink->meta(sink->context, key, text);
}

void hec_sink_event(const struct hec_sink *sink, enum hec_event_kind kind, int device, int64_t t_ns, const char *format,
                    ...) {
    char text[640];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    sink->event(sink->context, kind, device, t_ns, text);
}

const char *hec_event_name(enum hec_event_kind kind) {
    return event_names[kind];
}

static const struct hec_vendor_info vendors[] = {
#define HEC_VENDOR(id, name, title, source, files, resources) {name, title, source, files, resources},
#include "model/vendor.def"
#undef HEC_VENDOR
};

const struct hec_vendor_info *hec_vendor_info(enum hec_vendor vendor) {
    return &vendors[vendor];
}

const struct hec_vendor_info *hec_vendor_of_device(int index) {
    return index >= 0 && index < HEC_DEVICE_INDEX(HEC_VENDOR_COUNT, 0) ? &vendors[index / HEC_VENDOR_DEVICES_MAX]
                                                                       : NULL;
}

/* What follows word and mark in a text; NULL: the text does not begin so. */
static const char *after(const char *text, const char *word, const char *mark) {
    size_t length = strlen(word), marked = strlen(mark);
    return strncmp(text, word, length) == 0 && strncmp(text + length, mark, marked) == 0 ? text + length + marked
                                                                                         : NULL;
}

const char *hec_vendor_short(const char *device_name) {
    const char *rest = after(device_name, vendors[HEC_VENDOR_USUAL].title, " ");
    return rest ? rest : device_name;
}

const char *hec_vendor_event(const char *text) {
    const char *rest = NULL;
    for (int i = 0; i < HEC_VENDOR_COUNT && !rest; i++)
        rest = vendors[i].source[0] ? after(text, vendors[i].source, ": ") : NULL;
    return rest;
}

enum hec_event_kind hec_event_find(const char *name) {
    for (int i = 0; i < HEC_EVENT_COUNT; i++)
        if (strcmp(event_names[i], name) == 0)
            return (enum hec_event_kind)i;
    return HEC_EVENT_COUNT;
}
