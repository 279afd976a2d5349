#include "diagnose/replay/around.h"

#include "diagnose/replay/parts.h"
#include "diagnose/states/state.h"

#define GO_MOST 256 /* calls that go, one after the other */
#define MAKE_MOST 8 /* launches that make one number */

bool hec_call_reads(const struct hec_schedule_call *c) {
    return c->kind == HEC_CALL_COPY && c->from == HEC_MEMORY_DEVICE && c->what <= 1 &&
           (c->to == HEC_MEMORY_PAGEABLE || c->to == HEC_MEMORY_PINNED || c->to == HEC_MEMORY_HOST);
}

static const struct hec_schedule_call *before_of(const struct hec_schedule *s, const struct hec_schedule_call *c) {
    return c->after == HEC_SCHEDULE_NONE ? NULL : &s->calls[c->after];
}

static const struct hec_schedule_call *next_of(const struct hec_schedule *s, const struct hec_schedule_call *c) {
    const struct hec_schedule_call *end = s->calls + s->count, *next = c + 1;
    while (next < end && next->process != c->process)
        next++;
    return next < end ? next : NULL;
}

const struct hec_schedule_call *hec_call_copy(const struct hec_schedule *s, const struct hec_schedule_call *c) {
    return c->kind == HEC_CALL_WAIT && c->after != HEC_SCHEDULE_NONE ? before_of(s, c) : c;
}

/* ---- the code around allocations ---- */

static int64_t brief_ns(const struct hec_schedule *s, const struct hec_schedule_call *c) {
    int64_t ns = hec_call_code_ns(s, c);
    return ns > 0 && ns < HEC_STATE_BRIEF_NS ? ns : 0;
}

double hec_code_around_allocations(const struct hec_schedule *s, const struct hec_schedule_call *c) {
    const struct hec_schedule_call *kept = c, *gone;
    if (hec_call_code_ns(s, c) >= HEC_STATE_BRIEF_NS)
        return 1;
    for (int n = 0; kept && n < GO_MOST && kept->kind == HEC_CALL_ALLOC; n++)
        kept = next_of(s, kept);
    if (!kept || kept->kind == HEC_CALL_ALLOC)
        return 1;
    int64_t around_ns = brief_ns(s, kept), usual_ns = s->usual[hec_call_shape(kept)].code_ns;
    gone = before_of(s, kept);
    if (!gone || gone->kind != HEC_CALL_ALLOC)
        return 1;
    for (int n = 0; gone && n < GO_MOST && gone->kind == HEC_CALL_ALLOC; n++) {
        around_ns += brief_ns(s, gone);
        gone = before_of(s, gone);
    }
    return around_ns > usual_ns ? (double)usual_ns / (double)around_ns : 1;
}

/* ---- numbers in a row ---- */

static bool makes(const struct hec_schedule_call *c) {
    return c->kind == HEC_CALL_MEMSET ||
           (c->kind == HEC_CALL_KERNEL &&
            (c->kernel_class == HEC_KERNEL_CLASS_REDUCTION || c->kernel_class == HEC_KERNEL_CLASS_ELEMENTWISE));
}

const struct hec_schedule_call *hec_read_in_row(const struct hec_schedule *s, const struct hec_schedule_call *c) {
    const struct hec_schedule_call *read = hec_call_copy(s, c), *back;
    bool sums = false;
    for (int n = 0; read && makes(read) && n < MAKE_MOST; n++)
        read = next_of(s, read);
    if (!read || !hec_call_reads(read))
        return NULL;
    back = before_of(s, read);
    for (int n = 0; back && makes(back) && n < MAKE_MOST; n++) {
        sums = sums || (back->kind == HEC_CALL_KERNEL && back->kernel_class == HEC_KERNEL_CLASS_REDUCTION);
        back = before_of(s, back);
    }
    return sums && back && hec_call_reads(hec_call_copy(s, back)) ? read : NULL;
}
