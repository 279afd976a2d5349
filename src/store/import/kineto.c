/* Kineto's JSON: {..., "traceEvents": [event, ...], ...} in any order, or the array alone.
 * What the keys mean: PyTorch's libkineto, output_json.cpp, and the Trace Event Format of Chrome. */
#include "store/import/event.h"
#include "store/import/json.h"
#include "store/import/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROGRESS_EVENTS 16384

static bool is(const struct hec_json_text *text, const char *word) {
    return text->length == strlen(word) && memcmp(text->data, word, text->length) == 0;
}

struct kineto {
    struct hec_import *import;
    struct hec_import_file *file;
    struct hec_json *json;
    struct hec_import_event *event;
    struct hec_import_begun begun;
    struct hec_why *why;
    bool has_events;
    bool has_base;
};

static int read_events(struct kineto *k) {
    int more, err = hec_json_enter(k->json);
    if (err < 0)
        return err;
    k->has_events = true;
    while ((more = hec_json_element(k->json)) > 0) {
        if (hec_json_peek(k->json) != '{') {
            err = hec_json_skip(k->json);
            k->import->stats.bad++;
        } else {
            err = hec_import_event_read(k->json, k->event);
            if (err == HEC_OK)
                err = hec_import_event_keep(k->import, k->file, k->event, &k->begun, k->why);
        }
        k->import->stats.events++;
        if (err == HEC_OK && k->import->stats.events % PROGRESS_EVENTS == 0)
            err = hec_import_report(k->import, k->file, hec_import_input_share(k->json->input));
        if (err < 0)
            return err;
    }
    return more;
}

static int read_device(struct kineto *k) {
    struct hec_device d;
    int64_t number = 0, bytes = -1;
    struct hec_json_text key, name = {0};
    int more, err = hec_json_enter(k->json);
    hec_import_device_unknown(&d);
    d.index = -1;
    while (err == HEC_OK && (more = hec_json_member(k->json, &key)) != 0) {
        if (more < 0)
            return more;
        bool known = true;
        if (is(&key, "name") && hec_json_peek(k->json) == '"') {
            err = hec_json_string(k->json, &name);
            size_t length = err ? 0 : name.length < sizeof d.name - 1 ? name.length : sizeof d.name - 1;
            memcpy(d.name, name.data, length);
            d.name[length] = '\0';
        } else if (is(&key, "id")) {
            err = hec_import_integer(k->json, &number, &known);
            d.index = known && number >= 0 && number <= INT32_MAX ? (int)number : -1;
        } else if (is(&key, "totalGlobalMem")) {
            err = hec_import_integer(k->json, &bytes, &known);
            d.memory_kib = known && bytes >= 0 ? bytes / 1024 : -1;
        } else if (is(&key, "computeMajor") || is(&key, "computeMinor")) {
            int *to = is(&key, "computeMajor") ? &d.cuda_major : &d.cuda_minor;
            err = hec_import_integer(k->json, &number, &known);
            *to = known && number >= 0 && number < 1000 ? (int)number : -1;
        } else {
            err = hec_json_skip(k->json);
        }
    }
    bool amd = strncmp(d.name, hec_vendor_info(HEC_VENDOR_AMD)->title, 3) == 0;
    if (amd) /* ROCm's numbers are of another architecture: 9.0 is no Hopper */
        d.cuda_major = d.cuda_minor = -1;
    if (amd || d.cuda_major > 0)
        snprintf(d.vendor, sizeof d.vendor, "%s", hec_vendor_info(amd ? HEC_VENDOR_AMD : HEC_VENDOR_NVIDIA)->name);
    struct hec_device *to = err == HEC_OK && d.index >= 0 ? hec_import_tracks_device(&k->file->tracks, d.index) : NULL;
    if (to)
        *to = d;
    return err;
}

static int read_devices(struct kineto *k) {
    int more, err = hec_json_enter(k->json);
    while (err == HEC_OK && (more = hec_json_element(k->json)) != 0) {
        if (more < 0)
            return more;
        err = hec_json_peek(k->json) == '{' ? read_device(k) : hec_json_skip(k->json);
    }
    return err;
}

static int read_distributed(struct kineto *k) {
    struct hec_json_text key;
    int more, err = hec_json_enter(k->json);
    while (err == HEC_OK && (more = hec_json_member(k->json, &key)) != 0) {
        if (more < 0)
            return more;
        int64_t number;
        bool known;
        int32_t *to = is(&key, "rank") ? &k->file->rank : is(&key, "world_size") ? &k->import->world_size : NULL;
        err = to ? hec_import_integer(k->json, &number, &known) : hec_json_skip(k->json);
        if (to && err == HEC_OK && known && number >= 0 && number <= INT32_MAX)
            *to = (int32_t)number;
    }
    return err;
}

static int read_document(struct kineto *k) {
    struct hec_json_text key;
    int more, err = hec_json_enter(k->json);
    while (err == HEC_OK && (more = hec_json_member(k->json, &key)) != 0) {
        if (more < 0)
            return more;
        /* the key's text goes when the value is looked at */
        enum {
            OTHER,
            EVENTS,
            DEVICES,
            DISTRIBUTED,
            BASE
        } what = is(&key, "traceEvents")           ? EVENTS
                 : is(&key, "deviceProperties")    ? DEVICES
                 : is(&key, "distributedInfo")     ? DISTRIBUTED
                 : is(&key, "baseTimeNanoseconds") ? BASE
                                                   : OTHER;
        int type = hec_json_peek(k->json);
        if (type < 0)
            return type;
        if (what == EVENTS && type == '[') {
            err = read_events(k);
        } else if (what == DEVICES && type == '[') {
            err = read_devices(k);
        } else if (what == DISTRIBUTED && type == '{') {
            err = read_distributed(k);
        } else if (what == BASE) {
            int64_t base;
            err = hec_import_integer(k->json, &base, &k->has_base);
            if (err == HEC_OK && k->has_base && base >= 0 && base < INT64_MAX / 4)
                k->file->base_ns = base;
        } else {
            err = hec_json_skip(k->json);
        }
    }
    return err;
}

static int read_all(struct kineto *k) {
    hec_json_skip_mark(k->json);
    int type = hec_json_peek(k->json);
    const char *path = k->file->path;
    if (type == 0)
        return hec_fail(k->why, HEC_ERR_CORRUPT, "%s is empty", path);
    if (type != '{' && type != '[')
        return k->json->input_failed
                   ? type
                   : hec_fail(k->why, HEC_ERR_CORRUPT,
                              "%s is neither a trace of PyTorch's or JAX's profiler (JSON) nor an export of Nsight "
                              "Systems (SQLite)",
                              path);
    int err = type == '[' ? read_events(k) : read_document(k);
    if (err == HEC_OK)
        err = hec_json_finish(k->json);
    if (err == HEC_OK && !k->has_events)
        err = hec_fail(k->why, HEC_ERR_CORRUPT, "%s has no traceEvents: it is JSON, but no trace", path);
    k->import->stats.repaired += k->json->repaired;
    if (err == HEC_OK) {
        k->import->stats.bad += hec_import_begun_count(&k->begun); /* begun, never ended */
        k->file->wall = true;
    }
    return err;
}

int hec_import_kineto(struct hec_import *import, struct hec_import_file *file, struct hec_why *why) {
    struct hec_why local = {""};
    struct kineto k = {.import = import, .file = file, .why = why ? why : &local};
    struct hec_import_input *input;
    int err = hec_import_input_open(file->path, &input, k.why);
    if (err < 0)
        return err;
    k.json = malloc(sizeof *k.json);
    k.event = malloc(sizeof *k.event);
    if (k.json && k.event) {
        hec_json_init(k.json, input, k.why);
        err = read_all(&k);
    } else {
        err = hec_fail(k.why, HEC_ERR_NOMEM, "out of memory");
    }
    free(k.json);
    free(k.event);
    hec_import_begun_free(&k.begun);
    hec_import_input_close(input);
    return err;
}
