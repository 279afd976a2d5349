/* pods_page ROOT [ACCOUNT UID]: the page of a node on a virtual clock whose files are those of ROOT (proc, the kubelet's links and
 * socket), where the processes 100 and 101 shared a GPU for 30 s. With ACCOUNT the API server is asked, until it has named the pod. */
#include "agent/page.h"
#include "agent/pod_names.h"
#include "base/clock.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define WAIT_MS 20000 /* for the kubelet's answer */

static int64_t now_ns = HEC_NS_PER_S;
static int64_t clock_ns(void) {
    return now_ns;
}
static const struct hec_clock_source clock_source = {clock_ns, clock_ns};

static void read_device(struct hec_node *node, int64_t second) {
    node->sink.sample(node, HEC_GPU_ENERGY, 0, now_ns, 500000 * second);
    node->sink.sample(node, HEC_GPU_UTIL, 0, now_ns, 1000);
    for (int i = 0; i < 2; i++)
        node->sink.gpu_process(node, &(struct hec_gpu_process){.device = 0,
                                                               .pid = 100 + i,
                                                               .last_ns = now_ns,
                                                               .sm_util_sum_permille = 500 * second,
                                                               .sm_util_samples = second});
    node->sink.sample(node, HEC_GPU_CONTEXTS, 0, now_ns, 2);
    hec_node_tick(node, now_ns);
}

int main(int count, char **arguments) {
    char proc[512], links[512], socket[512];
    struct hec_identity *identity;
    struct hec_dcgm_list dcgm = {0};
    struct hec_buf page;
    struct hec_pod_names *names = NULL;
    if (count != 2 && count != 4)
        return 2;
    snprintf(proc, sizeof proc, "%s/proc", arguments[1]);
    snprintf(links, sizeof links, "%s/var/log/containers", arguments[1]);
    snprintf(socket, sizeof socket, "%s" HEC_KUBELET_SOCKET, arguments[1]);
    if (hec_identity_open(&(struct hec_identity_options){.proc_path = proc, .containers_path = links}, &identity) < 0)
        return 2;
    if (count == 4 && hec_pod_names_start(arguments[2], &names, NULL) < 0)
        return 2;
    hec_identity_ask(identity, names);
    for (int ms = 0; names && ms < WAIT_MS && !hec_pod_names_find(names, arguments[3], &(struct hec_tenant){0}); ms++)
        nanosleep(&(struct timespec){.tv_nsec = HEC_NS_PER_MS}, NULL);
    hec_clock_set_source(&clock_source);
    struct hec_node *node = hec_node_new(HEC_NS_PER_S, identity);
    if (!node || hec_kubelet_create(socket, &node->kubelet) < 0)
        return 1;
    for (int ms = 0; ms < WAIT_MS && access(socket, F_OK) == 0 && hec_kubelet_devices(node->kubelet)->count == 0;
         ms++) {
        hec_node_tick(node, now_ns);
        nanosleep(&(struct timespec){.tv_nsec = HEC_NS_PER_MS}, NULL);
    }
    node->sink.device(node, &(struct hec_device){.uuid = "GPU-51a1ed00-0000-4000-8000-000000000000"});
    for (int64_t second = 1; second <= 30; second++, now_ns += HEC_NS_PER_S)
        read_device(node, second);
    hec_buf_init(&page, HEC_PAGE_LENGTH_MAX);
    const struct hec_page_options options = {
        .dcgm = &dcgm, .hostname_label = "Hostname", .hostname = "node", .devices = {true, UINT64_MAX}};
    int err = hec_page_make(node, &options, &(struct hec_page_agent){0}, HEC_EXPOSITION_PROMETHEUS, now_ns, &page);
    fputs(hec_buf_text(&page), stdout);
    hec_buf_free(&page);
    hec_node_free(node);
    hec_pod_names_stop(names);
    return err == HEC_OK ? 0 : 1;
}
