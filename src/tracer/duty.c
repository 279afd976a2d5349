/* How much may be traced: an account. The program's time earns the budget, tracing spends what it is estimated to cost;
 * a window is opened when there is enough for a short one and closed when the account is empty. A program whose tracing
 * costs less than the budget earns more than it spends, so its window stays open. */
#include "tracer/tracer.h"

/* What tracing costs the program, from on/off blocks inside one process (H200, driver 580.159.04, CUPTI 13.0.85;
 * bench/gpu/trace): 150 to 270 ns a kernel launched from the host, 440 to 460 ns a node of a graph, 90 ns an API call
 * beside that, 0 to 20 ns a synchronisation; a switch 30 us of flush and at most 371 us in the first launch after it; a
 * flush 30 us. The dearest figure of each is taken, as if the program did nothing but launch. */
const struct hec_duty_costs hec_duty_costs = {
    .device_ns = 270,
    .node_ns = 460,
    .api_ns = 90,
    .sync_ns = 20,
    .switch_ns = 400000,
    .flush_ns = 30000,
};

/* A window holds a few steps of most training loops (20 to 200 ms); shorter ones would be spent on switching. */
#define WINDOW_MIN_NS (250 * HEC_NS_PER_MS)
/* The first one is longer, on credit, since the start of a program matters and is over soon. */
#define FIRST_DEBT_NS (500 * HEC_NS_PER_MS)
/* Unused budget is kept for so much time of the program: an idle hour is no licence for a slow minute. */
#define CREDIT_TIME_NS (10 * HEC_NS_PER_S)

static int64_t earned(const struct hec_duty *duty, int64_t ns) {
    return (int64_t)((double)ns * (double)duty->budget_ppm / 1e6);
}

void hec_duty_init(struct hec_duty *duty, int64_t budget_ppm) {
    *duty = (struct hec_duty){.budget_ppm = budget_ppm};
    duty->credit_ns = earned(duty, FIRST_DEBT_NS);
}

void hec_duty_elapse(struct hec_duty *duty, int64_t ns) {
    if (ns <= 0)
        return;
    duty->elapsed_ns += ns;
    if (duty->open)
        duty->window_ns += ns;
    duty->credit_ns += earned(duty, ns);
    int64_t most = earned(duty, CREDIT_TIME_NS);
    if (duty->credit_ns > most)
        duty->credit_ns = most;
}

void hec_duty_spend(struct hec_duty *duty, int64_t ns) {
    duty->spent_ns += ns;
    duty->credit_ns -= ns;
    duty->window_spent_ns += ns;
    if (duty->open && duty->window_ns > 0)
        duty->rate = (double)duty->window_spent_ns / (double)duty->window_ns;
}

void hec_duty_opened(struct hec_duty *duty) {
    duty->open = true;
    duty->window_ns = 0;
    duty->window_spent_ns = 0;
    hec_duty_spend(duty, hec_duty_costs.switch_ns);
}

void hec_duty_closed(struct hec_duty *duty) {
    duty->open = false;
}

bool hec_duty_should_open(const struct hec_duty *duty) {
    if (duty->budget_ppm == 0)
        return true;
    double window = duty->rate * (double)WINDOW_MIN_NS;
    return (double)duty->credit_ns >= window;
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
