/* How much may be traced: an account. The program's time earns the budget, tracing spends what it is estimated to cost;
 * a window is opened when there is enough for a short one and closed when the account is empty. A program whose tracing
 * costs less than the budget earns more than it spends, so its window stays open. */
#include "tracer/tracer.h"

/* What tracing costs the program (H200, driver 580.159.04, CUPTI 13.0.85; bench/gpu/trace).
 * On against off blocks while attached: 150 to 270 ns a kernel launched from the host, 440 to 460 ns a node of a graph, 90
 * ns an API call beside that; in PyTorch, with five calls a launch, 2.3 us a launch in all, of which 650 ns stay whatever
 * is on. A switch is 30 us of flush and at most 371 us in the first launch after it, a flush 30 us, attaching stalls the
 * launching thread for 5 ms. The dearest figure of each is taken.
 * All of that is time of the thread that launches. Where it runs ahead of the device (lead.c), only what the device loses
 * is felt, by time stamps between kernels: a transformer's training step of 380 kernels in 25.94 ms took 26.34 ms traced
 * and 26.01 ms afterwards, 1 us a kernel.
 * The host's part of replaying a graph of 100 nodes went from 1.2 to 15 us with CUPTI registered and nothing on. */
const struct hec_duty_costs hec_duty_costs = {
    .device_ns = 450,
    .queued_ns = 1000,
    .node_ns = 460,
    .api_ns = 200,
    .attached_ns = 650,
    .attached_graph_ns = 14000,
    .switch_ns = 400000,
    .attach_ns = 6000000,
    .flush_ns = 30000,
};

/* A window holds a few steps of most training loops (20 to 200 ms); shorter ones would be spent on switching. */
#define WINDOW_MIN_NS (250 * HEC_NS_PER_MS)
/* What the first one may spend: as if the program had run for so long. It begins in cuInit, well before the first
 * launch, and the start of a program matters. */
#define FIRST_CREDIT_NS (5 * HEC_NS_PER_S)
/* Unused budget is kept for so much time of the program: an idle hour is no licence for a slow minute. */
#define CREDIT_TIME_NS (10 * HEC_NS_PER_S)

/* Half of the budget is kept for what the estimate does not know: other machines, other versions, hec itself. */
#define USED_SHARE 0.5

static int64_t earned(const struct hec_duty *duty, int64_t ns) {
    return (int64_t)((double)ns * (double)duty->budget_ppm * USED_SHARE / 1e6);
}

void hec_duty_init(struct hec_duty *duty, int64_t budget_ppm) {
    *duty = (struct hec_duty){.budget_ppm = budget_ppm};
    duty->credit_ns = earned(duty, FIRST_CREDIT_NS);
}

/* of_attached: spent for being attached alone. That is there whatever is decided, so no window is paid with it. */
static void spend(struct hec_duty *duty, int64_t ns, int64_t of_attached) {
    duty->spent_ns += ns;
    duty->credit_ns -= ns - of_attached;
    if (!duty->open)
        return;
    duty->window_spent_ns += ns;
    duty->window_attached_ns += of_attached;
    if (duty->window_ns > 0) {
        duty->rate = (double)duty->window_spent_ns / (double)duty->window_ns;
        duty->attached_rate = (double)duty->window_attached_ns / (double)duty->window_ns;
    }
}

void hec_duty_elapse(struct hec_duty *duty, int64_t ns) {
    if (ns <= 0)
        return;
    duty->elapsed_ns += ns;
    duty->credit_ns += earned(duty, ns);
    int64_t most = earned(duty, CREDIT_TIME_NS);
    if (duty->credit_ns > most)
        duty->credit_ns = most;
    if (duty->open)
        duty->window_ns += ns;
    else if (duty->attached) /* launches are not seen now: taken to go on as in the last window */
        spend(duty, (int64_t)((double)ns * duty->attached_rate), (int64_t)((double)ns * duty->attached_rate));
}

void hec_duty_spend(struct hec_duty *duty, int64_t ns) {
    spend(duty, ns, 0);
}

void hec_duty_work(struct hec_duty *duty, const struct hec_duty_work *work) {
    const struct hec_duty_costs *cost = &hec_duty_costs;
    uint64_t queued = work->queued < work->launched ? work->queued : work->launched, at_once = work->launched - queued;
    double host =
        work->launched > 0 ? (double)at_once / (double)work->launched : 1; /* share of the calls that is felt */
    int64_t attached = (int64_t)at_once * cost->attached_ns;
    int64_t records = (int64_t)at_once * cost->device_ns + (int64_t)queued * cost->queued_ns +
                      (int64_t)work->nodes * cost->node_ns +
                      (int64_t)(host * (double)work->calls * (double)cost->api_ns);
    spend(duty, attached + records, attached);
}

void hec_duty_opened(struct hec_duty *duty) {
    hec_duty_spend(duty, hec_duty_costs.switch_ns + (duty->attached ? 0 : hec_duty_costs.attach_ns));
    duty->open = duty->attached = true;
    duty->window_ns = 0;
    duty->window_spent_ns = 0;
    duty->window_attached_ns = 0;
}

void hec_duty_closed(struct hec_duty *duty) {
    duty->open = false;
}

bool hec_duty_should_open(const struct hec_duty *duty) {
    if (duty->budget_ppm == 0)
        return true;
    double window = (duty->rate - duty->attached_rate) * (double)WINDOW_MIN_NS +
                    (double)(hec_duty_costs.switch_ns + (duty->attached ? 0 : hec_duty_costs.attach_ns));
    double most = (double)earned(duty, CREDIT_TIME_NS);
    return (double)duty->credit_ns >= (window < most ? window : most);
}

bool hec_duty_should_close(const struct hec_duty *duty) {
    return duty->budget_ppm != 0 && duty->credit_ns < 0 && duty->window_ns >= WINDOW_MIN_NS;
}

uint32_t hec_duty_estimate_ppm(const struct hec_duty *duty) {
    if (duty->elapsed_ns <= 0)
        return 0;
    double ppm = (double)duty->spent_ns * 1e6 / (double)duty->elapsed_ns;
    return ppm < 0 ? 0 : ppm > 1e6 ? 1000000 : (uint32_t)ppm;
}
