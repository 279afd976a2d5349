#include "diagnose/replay/load.h"

#include "base/clock.h"

void hec_load_begin(struct hec_load *load) {
    for (int d = 0; d < HEC_DEVICE_MAX; d++)
        load->of[d] = (struct hec_load_until){INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN, {0, 0}};
}

/* A union. */
static void add(double *seconds, int64_t *until_ns, int64_t start_ns, int64_t finish_ns) {
    start_ns = start_ns > *until_ns ? start_ns : *until_ns;
    if (finish_ns <= start_ns)
        return;
    *seconds += (double)(finish_ns - start_ns) / HEC_NS_PER_S;
    *until_ns = finish_ns;
}

static void transfer(struct hec_load_until *until, double *active_s) {
    add(active_s, &until->active_ns, until->transfer_ns[0], until->transfer_ns[1]);
    until->transfer_ns[0] = until->transfer_ns[1] = 0;
}

void hec_load_add(struct hec_load *load, const struct hec_schedule *s, const struct hec_schedule_call *c,
                  int64_t start_ns, int64_t finish_ns, struct hec_replay *out) {
    int d = s->streams[c->stream].device;
    if (d < 0 || d >= HEC_DEVICE_MAX)
        return;
    struct hec_load_until *until = &load->of[d];
    add(&out->busy_s[d], &until->busy_ns, start_ns, finish_ns);
    if (c->kind != HEC_CALL_KERNEL)
        return;
    add(&out->kernels_s[d], &until->kernels_ns, start_ns, finish_ns);
    if (c->kernel_class != HEC_KERNEL_CLASS_COMM)
        add(&out->work_s[d], &until->work_ns, start_ns, finish_ns);
    bool collective = c->flags & HEC_CALL_COLLECTIVE;
    if (collective || until->transfer_ns[0] <= start_ns)
        transfer(until, &out->active_s[d]);
    if (!collective) {
        add(&out->active_s[d], &until->active_ns, start_ns, finish_ns);
        return;
    }
    int64_t begin_ns = finish_ns - s->groups[c->what].least_ns;
    until->transfer_ns[0] = begin_ns > start_ns ? begin_ns : start_ns;
    until->transfer_ns[1] = finish_ns;
}

void hec_load_end(struct hec_load *load, struct hec_replay *out) {
    for (int d = 0; d < HEC_DEVICE_MAX; d++)
        transfer(&load->of[d], &out->active_s[d]);
}
