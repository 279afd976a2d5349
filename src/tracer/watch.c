/* Whether mode auto may attach CUPTI at all; pure. */
#include "tracer/tracer.h"

#include <stdio.h>

#define FIRST_NS (500 * HEC_NS_PER_MS)
#define AGAIN_NS (5 * HEC_NS_PER_S)
#define RATE_NS (250 * HEC_NS_PER_MS)
#define LAUNCHES_MIN 100u
/* A program that copies or launches, but rarely, is traced after so long. */
#define FEW_NS (10 * HEC_NS_PER_S)
/* Waiting for the device for this share of the time, and for no less than what it costs: the device sets the pace, and what
 * a launch costs is hidden behind work that is queued. */
#define WAITED_SHARE 0.1

static const struct hec_launches *at(const struct hec_watch *watch, uint32_t back) {
    return &watch->samples[(watch->count - 1 - back) % HEC_WATCH_SAMPLES];
}

void hec_watch_sample(struct hec_watch *watch, const struct hec_launches *sample) {
    bool began = sample->launches + sample->graphs > 0;
    if (watch->work_ns == 0 && (began || sample->copies > 0))
        watch->work_ns = sample->t_ns;
    if (watch->first_ns == 0) { /* until then only the newest is kept: that from which it begins */
        watch->samples[began ? watch->count : 0] = *sample;
        watch->count += began || watch->count == 0;
        watch->first_ns = began ? sample->t_ns : 0;
    } else if (sample->t_ns - at(watch, 0)->t_ns >= HEC_WATCH_SAMPLE_NS) {
        watch->samples[watch->count++ % HEC_WATCH_SAMPLES] = *sample;
    }
}

/* Of attached_ns and attached_graph_ns each, ns of the program's time. */
static double cost_of(const struct hec_launches *from, const struct hec_launches *to) {
    return (double)(to->launches + to->copies - from->launches - from->copies) * (double)hec_duty_costs.attached_ns +
           (double)(to->graphs - from->graphs) * (double)hec_duty_costs.attached_graph_ns;
}

struct hec_watch_judgement hec_watch_judge(struct hec_watch *watch, uint32_t budget_ppm, int64_t now_ns) {
    struct hec_watch_judgement out = {.verdict = HEC_WATCH_UNDECIDED};
    if (watch->count == 0 || watch->work_ns == 0)
        return out;
    const struct hec_launches *last = at(watch, 0), *first = last;
    bool few = last->launches + last->graphs < LAUNCHES_MIN;
    if (watch->out ? now_ns - watch->judged_ns < AGAIN_NS
        : few      ? now_ns - watch->work_ns < FEW_NS
                   : now_ns - watch->first_ns < FIRST_NS)
        return out;
    watch->judged_ns = now_ns;
    uint32_t kept = watch->count < HEC_WATCH_SAMPLES ? watch->count : HEC_WATCH_SAMPLES;
    double worst = 0;
    for (uint32_t from = 1, to = 0; from < kept && now_ns - at(watch, from)->t_ns <= AGAIN_NS + RATE_NS; from++) {
        first = at(watch, from);
        while (to + 1 < from && at(watch, to + 1)->t_ns - first->t_ns >= RATE_NS)
            to++;
        int64_t ns = at(watch, to)->t_ns - first->t_ns;
        double share = ns >= RATE_NS ? cost_of(first, at(watch, to)) / (double)ns : 0;
        if (share >= worst) {
            worst = share;
            out.launches_per_s =
                (double)(at(watch, to)->launches + at(watch, to)->graphs - first->launches - first->graphs) * 1e9 /
                (double)(ns > 0 ? ns : 1);
        }
    }
    out.share = worst;
    if (last->t_ns > first->t_ns)
        out.waited = (double)(last->waited_ns - first->waited_ns) / (double)(last->t_ns - first->t_ns);
    bool hidden = out.waited >= WAITED_SHARE && out.waited >= worst, cheap = worst * 1e6 <= (double)budget_ppm;
    /* outside, a pause of the program says nothing of how it goes on */
    if (watch->out && last->launches + last->graphs - first->launches - first->graphs < LAUNCHES_MIN)
        return out;
    out.verdict = hidden || cheap ? HEC_WATCH_ATTACH : HEC_WATCH_OUT;
    watch->out = out.verdict == HEC_WATCH_OUT;
    return out;
}

void hec_watch_sentence(const struct hec_watch_judgement *judgement, uint32_t budget_ppm, char *text, size_t bytes) {
    double unit = 1, percent = judgement->share * 100;
    while (judgement->launches_per_s >= unit * 1000)
        unit *= 10; /* three digits say enough */
    snprintf(
        text, bytes,
        "%.0f launches a second: tracing would slow the program by about %.*f %%, more than the budget of %.3g %%; "
        "--budget or --trace=full shows its kernels",
        (double)(uint64_t)(judgement->launches_per_s / unit + 0.5) * unit, percent < 10, percent, budget_ppm / 1e4);
}

bool hec_kept_may_open(uint64_t bytes, int64_t elapsed_ns) {
    return bytes + HEC_KEPT_STEP_BYTES <= hec_kept_limit(elapsed_ns);
}

uint64_t hec_kept_limit(int64_t elapsed_ns) {
    return HEC_KEPT_FIRST_BYTES + (uint64_t)((double)HEC_KEPT_HOUR_BYTES * (double)elapsed_ns / 3600e9);
}
