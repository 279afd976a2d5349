#include "diagnose/replay/load.h"

#include "base/clock.h"

void hec_load_begin(struct hec_load *load) {
    static const struct hec_load_union nothing = {0, INT64_MIN};
    for (int d = 0; d < HEC_DEVICE_MAX; d++)
        load->of[d] = (struct hec_load_device){nothing, nothing, nothing, nothing, {0, 0}};
}

static void add_interval(struct hec_load_union *to, int64_t start_ns, int64_t finish_ns) {
    start_ns = start_ns > to->until_ns ? start_ns : to->until_ns;
    if (finish_ns <= start_ns)
        return;
    to->ns += finish_ns - start_ns;
    to->until_ns = finish_ns;
}

static void transfer(struct hec_load_device *d) {
    add_interval(&d->active, d->transfer_ns[0], d->transfer_ns[1]);
    d->transfer_ns[0] = d->transfer_ns[1] = 0;
}

void hec_load_add(struct hec_load *load, const struct hec_schedule *s, const struct hec_schedule_call *c,
                  int64_t start_ns, int64_t finish_ns) {
    int device = s->streams[c->stream].device;
    if (device < 0 || device >= HEC_DEVICE_MAX)
        return;
    struct hec_load_device *d = &load->of[device];
    add_interval(&d->busy, start_ns, finish_ns);
    if (c->kind != HEC_CALL_KERNEL)
        return;
    add_interval(&d->kernels, start_ns, finish_ns);
    if (c->kernel_class != HEC_KERNEL_CLASS_COMM)
        add_interval(&d->work, start_ns, finish_ns);
    bool collective = c->flags & HEC_CALL_COLLECTIVE;
    if (collective || d->transfer_ns[0] <= start_ns)
        transfer(d);
    if (!collective) {
        add_interval(&d->active, start_ns, finish_ns);
        return;
    }
    int64_t begin_ns = finish_ns - s->groups[c->what].least_ns;
    d->transfer_ns[0] = begin_ns > start_ns ? begin_ns : start_ns;
    d->transfer_ns[1] = finish_ns;
}

static double seconds(const struct hec_load_union *of) {
    return (double)of->ns / HEC_NS_PER_S;
}

void hec_load_end(struct hec_load *load, struct hec_replay *out) {
    for (int i = 0; i < HEC_DEVICE_MAX; i++) {
        struct hec_load_device *d = &load->of[i];
        transfer(d);
        out->busy_s[i] = seconds(&d->busy);
        out->kernels_s[i] = seconds(&d->kernels);
        out->active_s[i] = seconds(&d->active);
        out->work_s[i] = seconds(&d->work);
    }
}
