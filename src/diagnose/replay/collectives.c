#include "diagnose/replay/parts.h"

#include <stdlib.h>

/* Ends of one collective on two H100 differ by 0.3 us at most; clocks of several processes are the same one. */
#define TOGETHER_NS 20000

static bool by_finish(const struct hec_schedule_call *call, int64_t *key) {
    *key = call->finish_ns;
    return call->kind == HEC_CALL_KERNEL && call->kernel_class == HEC_KERNEL_CLASS_COMM && hec_call_launched(call);
}

/* Of those that end within the bound after the first, one a process, of the same kernel, that had begun when the first ended. */
static size_t members(const struct hec_schedule *s, const uint64_t *list, size_t count, size_t first, uint32_t *out) {
    const struct hec_schedule_call *f = &s->calls[hec_order_at(list[first])];
    size_t n = 0;
    for (size_t k = first; k < count && n < UINT8_MAX; k++) {
        const struct hec_schedule_call *c = &s->calls[hec_order_at(list[k])];
        bool other = true;
        if (c->finish_ns - f->finish_ns > TOGETHER_NS)
            break;
        for (size_t m = 0; m < n && other; m++)
            other = s->calls[out[m]].process != c->process;
        if (other && c->what == f->what && c->start_ns < f->finish_ns && !(c->flags & HEC_CALL_COLLECTIVE))
            out[n++] = hec_order_at(list[k]);
    }
    return n;
}

/* Who comes to a collective first waits in it for the last. */
static void find_even(struct hec_schedule *s, int64_t *latest_ns) {
    int64_t waits_ns[256] = {0};
    bool joins[256] = {false};
    double mean_ns = 0, all_ns = (double)(s->to_ns - s->from_ns);
    int processes = 0;
    for (int p = 0; p < s->process_count; p++)
        s->even[p] = 1;
    for (size_t g = 0; g < s->group_count; g++)
        latest_ns[g] = INT64_MIN;
    for (size_t i = 0; i < s->count; i++)
        if (s->calls[i].flags & HEC_CALL_COLLECTIVE && s->calls[i].start_ns > latest_ns[s->calls[i].what])
            latest_ns[s->calls[i].what] = s->calls[i].start_ns;
    for (size_t i = 0; i < s->count; i++) {
        const struct hec_schedule_call *c = &s->calls[i];
        if (!(c->flags & HEC_CALL_COLLECTIVE))
            continue;
        joins[c->process] = true;
        waits_ns[c->process] += latest_ns[c->what] - c->start_ns;
    }
    for (int p = 0; p < s->process_count; p++)
        if (joins[p]) {
            mean_ns += all_ns - (double)waits_ns[p];
            processes++;
        }
    for (int p = 0; p < s->process_count; p++)
        if (joins[p] && (double)waits_ns[p] < all_ns)
            s->even[p] = mean_ns / processes / (all_ns - (double)waits_ns[p]);
}

int hec_schedule_collectives(struct hec_schedule *s) {
    uint64_t *list = NULL;
    uint32_t of_one[UINT8_MAX];
    size_t count = 0;
    int err = s->process_count > 1 ? hec_order_calls(s, by_finish, &list, &count) : HEC_OK;
    if (!err && count > 0 && !(s->group_size = malloc(count)))
        err = HEC_ERR_NOMEM;
    for (size_t k = 0; k < count && !err; k++) {
        if (s->calls[hec_order_at(list[k])].flags & HEC_CALL_COLLECTIVE)
            continue;
        size_t n = members(s, list, count, k, of_one);
        if (n < 2)
            continue;
        for (size_t m = 0; m < n; m++) {
            s->calls[of_one[m]].flags |= HEC_CALL_COLLECTIVE;
            s->calls[of_one[m]].what = (uint32_t)s->group_count;
        }
        s->group_size[s->group_count++] = (uint8_t)n;
    }
    int64_t *latest_ns = err ? NULL : malloc((s->group_count + 1) * sizeof *latest_ns);
    if (latest_ns)
        find_even(s, latest_ns);
    else
        err = err ? err : HEC_ERR_NOMEM;
    free(latest_ns);
    free(list);
    return err;
}
