#include "mark/hooks.h"

#include "mark/mark.h"

#include <math.h>

#define NOW 1 /* a window's number is even */

/* One record with at most two names, which are looked up (and defined in the ring) before it is written: of a window that the
 * caller knows, or of that of NOW. */
static int put(struct hec_ring_record *record, enum hec_ring_kind kind, uint32_t *id, const char *name, bool is_long,
               uint32_t *second_id, const char *second) {
    struct hec_ring *ring = hec_mark_enter();
    bool written = false;
    if (ring) {
        if (record->window == NOW)
            record->window = (uint16_t)hec_mark_window();
        if (name && name[0])
            *id = is_long ? hec_mark_text(ring, name) : hec_mark_name(ring, name);
        if (second && second[0])
            *second_id = hec_mark_text(ring, second);
        if ((name && name[0] && *id == 0) || (second && second[0] && *second_id == 0))
            hec_ring_drop(ring, 1);
        else
            written = hec_mark_write(ring, record, kind);
    }
    hec_mark_leave();
    return written;
}

int hec_hook_step(const char *unit, double units, uint32_t source, int64_t t_ns) {
    if (units < 0 || isinf(units))
        return 0;
    struct hec_ring_record record = {.t_ns = t_ns, .flags = (uint8_t)source, .window = NOW, .u.mark.value = units};
    return put(&record, HEC_RING_STEP_FOUND, &record.u.mark.name, unit, false, NULL, NULL);
}

int hec_hook_value(const char *name, double value, int64_t t_ns) {
    if (!name || !name[0])
        return 0;
    struct hec_ring_record record = {.t_ns = t_ns, .window = NOW, .u.mark.value = value};
    return put(&record, HEC_RING_VALUE, &record.u.mark.name, name, false, NULL, NULL);
}

int hec_hook_interval(const char *name, int64_t start_ns, int64_t duration_ns) {
    if (!name || !name[0] || start_ns <= 0 || duration_ns < 0)
        return 0;
    struct hec_ring_record record = {.t_ns = start_ns, .window = NOW, .u.interval.duration_ns = duration_ns};
    return put(&record, HEC_RING_INTERVAL, &record.u.interval.name, name, false, NULL, NULL);
}

int hec_hook_frame(uint32_t window, uint32_t id, uint32_t parent, const char *file, const char *function,
                   uint32_t line) {
    if (id == 0 || parent >= id)
        return 0;
    struct hec_ring_record record = {.window = (uint16_t)window, .u.frame = {.id = id, .parent = parent, .line = line}};
    return put(&record, HEC_RING_FRAME, &record.u.frame.file, file, true, &record.u.frame.function, function);
}

int hec_hook_stack(uint32_t window, uint32_t tid, uint32_t frame, uint32_t period_us) {
    if (frame == 0)
        return 0;
    struct hec_ring_record record = {
        .tid = tid, .window = (uint16_t)window, .u.stack = {.frame = frame, .period_us = period_us}};
    return put(&record, HEC_RING_STACK, NULL, NULL, false, NULL, NULL);
}

int hec_hook_window(void) {
    struct hec_ring *ring = hec_mark_enter();
    int window = ring ? (int)(hec_ring_window(ring) & ~1u & INT32_MAX) : -1;
    hec_mark_leave();
    return window;
}

int hec_hook_stacks(void) {
    struct hec_ring *ring = hec_mark_enter();
    int stacks = ring ? (int)hec_ring_stacks(ring) : -1;
    hec_mark_leave();
    return stacks;
}

int hec_hook_fact(const char *key, const char *text) {
    if (!key || !key[0])
        return 0;
    struct hec_ring_record record = {.window = NOW};
    return put(&record, HEC_RING_FACT, &record.u.fact.key, key, true, &record.u.fact.text, text);
}
