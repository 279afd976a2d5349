/* node_scrapes PROC LAG_S JOBS SECONDS GAP_S: pages of a node on a virtual clock, scraped every 15 s, in which so many jobs of
 * SECONDS run one after the other, GAP_S apart, then nothing for a quarter of an hour. Job i is the process 100 + i of PROC.
 * Before each page stands "# scrape". */
#include "agent/page.h"
#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>

#define SCRAPE_S 15
#define REST_S 900
#define IDLE_W 120
#define BUSY_W 600

static int64_t now_ns = HEC_NS_PER_S;
static int64_t clock_ns(void) {
    return now_ns;
}
static const struct hec_clock_source clock_source = {clock_ns, clock_ns};

static void read_device(struct hec_node *node, int job) {
    static int64_t counter_mj, work_permille;
    bool busy = job >= 0;
    counter_mj += 1000 * (busy ? BUSY_W : IDLE_W);
    node->sink.sample(node, HEC_GPU_ENERGY, 0, now_ns, counter_mj);
    node->sink.sample(node, HEC_GPU_UTIL, 0, now_ns, busy ? 1000 : 0);
    node->sink.sample(node, HEC_GPU_POWER, 0, now_ns, 1000 * (busy ? BUSY_W : IDLE_W));
    if (busy) {
        work_permille += 1000;
        node->sink.gpu_process(node, &(struct hec_gpu_process){.device = 0,
                                                               .pid = 100 + job,
                                                               .last_ns = now_ns,
                                                               .sm_util_sum_permille = work_permille,
                                                               .sm_util_samples = work_permille / 1000});
    }
    node->sink.sample(node, HEC_GPU_CONTEXTS, 0, now_ns, busy);
    hec_node_tick(node, now_ns);
}

static void scrape(struct hec_node *node, const struct hec_dcgm_list *dcgm) {
    const struct hec_page_options options = {.dcgm = dcgm,
                                             .devices = {.instances = true, .gpus = UINT64_MAX},
                                             .hostname_label = "Hostname",
                                             .hostname = "node"};
    struct hec_buf page;
    hec_buf_init(&page, HEC_PAGE_LENGTH_MAX);
    if (hec_page_make(node, &options, &(struct hec_page_agent){0}, HEC_EXPOSITION_PROMETHEUS, now_ns, &page) == HEC_OK)
        printf("# scrape\n%s", hec_buf_text(&page));
    hec_buf_free(&page);
}

int main(int count, char **arguments) {
    struct hec_identity *identity;
    struct hec_dcgm_list dcgm = {0};
    if (count != 6 || hec_identity_open(&(struct hec_identity_options){.proc_path = arguments[1]}, &identity) < 0)
        return 2;
    hec_clock_set_source(&clock_source);
    int lag_s = atoi(arguments[2]), jobs = atoi(arguments[3]), seconds = atoi(arguments[4]), gap_s = atoi(arguments[5]);
    struct hec_node *node = hec_node_new(HEC_NS_PER_S, identity);
    if (!node)
        return 1;
    node->lag_ns = lag_s * HEC_NS_PER_S;
    node->sink.device(node, &(struct hec_device){.uuid = "GPU-0", .power_limit_mw = 700000});
    int first_s = 10 * SCRAPE_S, turn_s = seconds + gap_s, end_s = first_s + jobs * turn_s + REST_S;
    for (int t = 0; t < end_s; t++, now_ns += HEC_NS_PER_S) {
        int job = t < first_s ? jobs : (t - first_s) / turn_s;
        read_device(node, job < jobs && (t - first_s) % turn_s < seconds ? job : -1);
        if (t % SCRAPE_S == 0)
            scrape(node, &dcgm);
    }
    hec_node_free(node);
    return 0;
}
