/* Reading one event: which keys matter, and numbers in any spelling. */
#include "store/import/event.h"

#include "base/hash.h"
#include "store/import/words.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MICROS_MAX INT64_C(4000000000000000) /* 127 years */

/* A number's text as a double: for exponents, which no profiler is known to write. */
static bool as_double(const char *text, size_t length, double *value) {
    char copy[64];
    if (length == 0 || length >= sizeof copy)
        return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    char *end;
    *value = strtod(copy, &end);
    return *end == '\0' && isfinite(*value);
}

/* Decimal microseconds as nanoseconds, exact to the third decimal, rounded after it. False: no number, or too large. */
static bool nanoseconds(const char *text, size_t length, int64_t *ns) {
    size_t i = 0;
    bool negative = length > 0 && text[0] == '-';
    int64_t micros = 0, nanos = 0;
    for (i = negative; i < length && text[i] >= '0' && text[i] <= '9'; i++)
        if ((micros = micros * 10 + (text[i] - '0')) > MICROS_MAX)
            return false;
    if (i == (size_t)negative)
        return false;
    if (i < length && text[i] == '.') {
        int weight = 100;
        for (i++; i < length && text[i] >= '0' && text[i] <= '9'; i++) {
            if (weight)
                nanos += weight * (text[i] - '0');
            else if (text[i] >= '5' && text[i - 4] == '.') /* the fourth decimal */
                nanos++;
            weight /= 10;
        }
    }
    if (i < length) {
        double value;
        if (!as_double(text, length, &value) || fabs(value) > (double)MICROS_MAX)
            return false;
        *ns = llround(value * 1000);
        return true;
    }
    *ns = micros * 1000 + nanos;
    if (negative)
        *ns = -*ns;
    return true;
}

static bool whole(const char *text, size_t length, int64_t *value) {
    size_t digits = length > 0 && text[0] == '-';
    size_t i = digits;
    uint64_t sum = 0;
    for (; i < length && text[i] >= '0' && text[i] <= '9' && i < digits + 18; i++)
        sum = sum * 10 + (uint64_t)(text[i] - '0');
    if (i == length && i > digits) {
        *value = digits ? -(int64_t)sum : (int64_t)sum;
        return true;
    }
    if (length > 2 && length < 19 && text[0] == '0' && (text[1] | 0x20) == 'x') {
        char copy[20], *end;
        memcpy(copy, text, length);
        copy[length] = '\0';
        *value = (int64_t)strtoull(copy, &end, 16);
        return *end == '\0';
    }
    double number;
    if (!as_double(text, length, &number) || fabs(number) > 9e18)
        return false;
    *value = (int64_t)number;
    return true;
}

/* The text of a number, or of a string; length 0 for what is neither. */
static int scalar(struct hec_json *json, struct hec_json_text *text) {
    int type = hec_json_peek(json);
    *text = (struct hec_json_text){"", 0};
    if (type == '0')
        return hec_json_number(json, text);
    if (type == '"')
        return hec_json_string(json, text);
    return type < 0 ? type : hec_json_skip(json);
}

int hec_import_integer(struct hec_json *json, int64_t *value, bool *known) {
    struct hec_json_text text;
    int err = scalar(json, &text);
    *known = err == HEC_OK && whole(text.data, text.length, value);
    return err;
}

static int number(struct hec_json *json, struct hec_import_number *to) {
    return hec_import_integer(json, &to->value, &to->known);
}

static int micros(struct hec_json *json, struct hec_import_number *to) {
    struct hec_json_text text;
    int err = scalar(json, &text);
    to->known = err == HEC_OK && nanoseconds(text.data, text.length, &to->value);
    return err;
}

/* [x, y, z] */
static int three(struct hec_json *json, struct hec_import_number to[3]) {
    if (hec_json_peek(json) != '[')
        return hec_json_skip(json);
    int more, err = hec_json_enter(json);
    for (int i = 0; err == HEC_OK && (more = hec_json_element(json)) != 0; i++) {
        if (more < 0)
            return more;
        err = i < 3 ? number(json, &to[i]) : hec_json_skip(json);
    }
    return err;
}

static int text_into(struct hec_json *json, char *out, size_t size) {
    struct hec_json_text text;
    int err = scalar(json, &text);
    if (err < 0)
        return err;
    size_t length = text.length < size - 1 ? text.length : size - 1;
    memcpy(out, text.data, length);
    out[length] = '\0';
    return HEC_OK;
}

#define IS(word) (key.length == sizeof word - 1 && memcmp(key.data, word, sizeof word - 1) == 0)

/* "regs:174 static_shared:0 dynamic_shared:147456 grid:32,16,1 block:128,1,1 occ_pct:12.5" */
static int kernel_details(struct hec_json *json, struct hec_import_event *e) {
    char text[256];
    long long registers, first, second, grid[3], block[3];
    int err = text_into(json, text, sizeof text);
    if (err < 0 ||
        sscanf(text, "regs:%lld static_shared:%lld dynamic_shared:%lld grid:%lld,%lld,%lld block:%lld,%lld,%lld",
               &registers, &first, &second, &grid[0], &grid[1], &grid[2], &block[0], &block[1], &block[2]) != 9)
        return err;
    e->registers = (struct hec_import_number){true, registers};
    e->shared_bytes = (struct hec_import_number){first >= 0 && second >= 0 && first < INT32_MAX && second < INT32_MAX,
                                                 first + second};
    for (int i = 0; i < 3; i++) {
        e->grid[i] = (struct hec_import_number){true, grid[i]};
        e->block[i] = (struct hec_import_number){true, block[i]};
    }
    return err;
}

static int read_argument(struct hec_json *json, struct hec_json_text key, struct hec_import_event *e) {
    static const struct {
        const char *key;
        size_t length, offset;
    } numbers[] = {
#define ARGUMENT(key, field) {key, sizeof key - 1, offsetof(struct hec_import_event, field)}
        ARGUMENT("correlation", correlation),
        ARGUMENT("stream", stream),
        ARGUMENT("device", device),
        ARGUMENT("context", context),
        ARGUMENT("bytes", bytes),
        ARGUMENT("size", size),
        ARGUMENT("registers per thread", registers),
        ARGUMENT("shared memory", shared_bytes),
        ARGUMENT("graph node id", graph_node),
        ARGUMENT("In msg nelems", elements_in),
        ARGUMENT("Out msg nelems", elements_out),
        ARGUMENT("Group size", ranks),
        ARGUMENT("Seq", sequence),
        ARGUMENT("correlation_id", correlation), /* these are XLA's */
        ARGUMENT("cuda_graph_node_id", graph_node),
        ARGUMENT("step_num", step),
#undef ARGUMENT
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (key.length == numbers[i].length && memcmp(key.data, numbers[i].key, key.length) == 0)
            return number(json, (struct hec_import_number *)((char *)e + numbers[i].offset));
    if (IS("grid"))
        return three(json, e->grid);
    if (IS("block"))
        return three(json, e->block);
    if (IS("name"))
        return text_into(json, e->label, sizeof e->label);
    if (IS("dtype"))
        return text_into(json, e->element, sizeof e->element);
    if (IS("Process Group Name"))
        return text_into(json, e->communicator, sizeof e->communicator);
    if (IS("Collective name"))
        return text_into(json, e->collective, sizeof e->collective);
    if (IS("Process Group Ranks")) {
        struct hec_json_text text;
        int err = scalar(json, &text);
        e->members = hec_hash(text.data, text.length);
        return err;
    }
    if (IS("kernel_details"))
        return kernel_details(json, e);
    if (IS("cuda_sync_kind")) {
        struct hec_json_text text;
        int err = scalar(json, &text);
        e->sync_type = hec_import_sync_type(text.data, text.length);
        return err;
    }
    return hec_json_skip(json);
}

static int read_arguments(struct hec_json *json, struct hec_import_event *e) {
    struct hec_json_text key;
    if (hec_json_peek(json) != '{')
        return hec_json_skip(json);
    int more, err = hec_json_enter(json);
    while (err == HEC_OK && (more = hec_json_member(json, &key)) != 0)
        err = more < 0 ? more : read_argument(json, key, e);
    return err;
}

/* Operators and annotations say nothing in their arguments that is of use here, and they are most of a trace. */
static bool arguments_matter(const struct hec_import_event *e) {
    return e->kind != HEC_ACTIVITY_OPERATOR && e->kind != HEC_ACTIVITY_RANGE;
}

/* 1: nothing more of the event is needed. */
static int read_member(struct hec_json *json, struct hec_json_text key, struct hec_import_event *e) {
    struct hec_json_text text;
    int err;
    if (IS("ph")) {
        err = scalar(json, &text);
        e->phase = text.length == 1 ? text.data[0] : '?';
        return err < 0 ? err : !strchr("XBEM", e->phase);
    }
    if (IS("cat")) {
        err = scalar(json, &text);
        e->kind = hec_import_kind_of_category(text.data, text.length);
        e->categorised = text.length > 0;
        bool metadata = text.length == 10 && memcmp(text.data, "__metadata", 10) == 0;
        if (e->kind == HEC_IMPORT_NO_KIND && !metadata)
            snprintf(e->category, sizeof e->category, "%.*s", (int)text.length, text.data);
        return err < 0 ? err : e->kind == HEC_IMPORT_NO_KIND && !metadata;
    }
    if (IS("name")) {
        err = scalar(json, &text);
        memcpy(e->name, text.data, text.length);
        e->name_length = text.length;
        return err;
    }
    if (IS("ts"))
        return micros(json, &e->start_ns);
    if (IS("dur"))
        return micros(json, &e->duration_ns);
    if (IS("pid"))
        return number(json, &e->pid);
    if (IS("tid"))
        return number(json, &e->tid);
    if (IS("args"))
        return arguments_matter(e) ? read_arguments(json, e) : hec_json_skip(json);
    return hec_json_skip(json);
}

int hec_import_event_read(struct hec_json *json, struct hec_import_event *e) {
    struct hec_json_text key;
    memset(e, 0, offsetof(struct hec_import_event, name));
    e->kind = HEC_IMPORT_NO_KIND;
    int more, err = hec_json_enter(json);
    while (err == HEC_OK && (more = hec_json_member(json, &key)) != 0) {
        if (more < 0)
            return more;
        err = read_member(json, key, e);
        if (err > 0) {
            e->phase = 0;
            return hec_json_leave(json);
        }
    }
    return err;
}
