/* Who holds a device of the node: the processes that run on it, and those to whom the kubelet or a batch system gave it. */
#include "agent/node.h"

#include <string.h>

/* How much of the device a process used since the last division. The driver gives new samples every few seconds: before they
 * come, what they were. Then one without any did not run, where there are some of others. */
static int used(struct hec_node_process *process, bool fresh, bool ran) {
    int64_t sum = process->now.sm_util_sum_permille - process->util_sum;
    int64_t samples = process->now.sm_util_samples - process->util_samples;
    process->util_sum = process->now.sm_util_sum_permille;
    process->util_samples = process->now.sm_util_samples;
    if (samples > 0)
        process->sm_permille = (int)(sum / samples);
    else if (fresh || !ran)
        process->sm_permille = 0;
    return process->sm_permille;
}

/* To whom the kubelet gave the device, or one instance of it (id -1: the whole). Returns how many there are. */
static size_t find_pods(const struct hec_node *node, const struct hec_node_device *device, int id,
                        const struct hec_tenant *pods[HEC_NODE_PODS_MAX]) {
    struct hec_device_place place = {.uuid = device->info.uuid, .minor = device->info.index, .instance = id};
    size_t count = 0;
    if (!node->kubelet)
        return 0;
    if (id < 0)
        return hec_pod_devices_find(hec_kubelet_devices(node->kubelet), &place, pods, HEC_NODE_PODS_MAX);
    for (int i = 0; i < device->instance_count; i++) { /* of each MIG device in it */
        const struct hec_tenant *found[HEC_NODE_PODS_MAX];
        if (device->instances[i].now.id != id)
            continue;
        place.mig_uuid = device->instances[i].now.uuid;
        size_t more = hec_pod_devices_find(hec_kubelet_devices(node->kubelet), &place, found, HEC_NODE_PODS_MAX);
        for (size_t k = 0; k < more && k < HEC_NODE_PODS_MAX; k++) {
            size_t known = 0;
            while (known < count && !hec_tenant_equal(pods[known], found[k]))
                known++;
            if (known == count && count < HEC_NODE_PODS_MAX)
                pods[count++] = found[k];
        }
    }
    return count;
}

const struct hec_tenant *hec_node_instance_pod(const struct hec_node *node, const struct hec_node_device *device,
                                               int id) {
    const struct hec_tenant *pods[HEC_NODE_PODS_MAX];
    return find_pods(node, device, id, pods) == 1 ? pods[0] : NULL;
}

size_t hec_node_jobs(const struct hec_node *node, const struct hec_node_device *device, int id,
                     const struct hec_tenant *jobs[HEC_NODE_PODS_MAX]) {
    size_t count = hec_job_map_find(&node->jobs, device->info.index, id, jobs, HEC_NODE_PODS_MAX);
    return count < HEC_NODE_PODS_MAX ? count : HEC_NODE_PODS_MAX;
}

bool hec_node_is_allocated(const struct hec_node *node, const struct hec_node_device *device) {
    const struct hec_tenant *found[HEC_NODE_PODS_MAX];
    bool any = find_pods(node, device, HEC_SHARES_WHOLE, found) || hec_node_jobs(node, device, HEC_SHARES_WHOLE, found);
    for (int i = 0; i < device->instance_count && !any; i++)
        any = find_pods(node, device, device->instances[i].now.id, found) > 0;
    return any;
}

/* Those to whom the device was given, into holders from `first` on, by GPU instance. A batch job in a container is the container's. */
static size_t list_allocated(struct hec_node *node, const struct hec_node_device *device, size_t first) {
    const struct hec_tenant *found[HEC_NODE_PODS_MAX];
    size_t listed = 0;
    for (int i = device->instance_count ? 0 : -1; i < device->instance_count; i++) {
        int id = i < 0 ? HEC_SHARES_WHOLE : device->instances[i].now.id;
        if (i >= 0 && !hec_node_instance_first(device, i))
            continue;
        size_t count = find_pods(node, device, id, found);
        if (count == 0)
            count = hec_node_jobs(node, device, id, found);
        for (size_t k = 0; k < count && k < HEC_NODE_PODS_MAX && listed < HEC_NODE_PODS_MAX; k++)
            node->holders[first + listed++] = (struct hec_shares_holder){.tenant = found[k], .instance = id};
    }
    return listed;
}

/* Those of them that hold what the process uses, all or none. */
static size_t holders_of(const struct hec_node *node, size_t first, size_t listed, int instance,
                         const struct hec_tenant *own[HEC_NODE_PODS_MAX]) {
    size_t count = 0;
    for (size_t i = 0; i < listed && listed < HEC_NODE_PODS_MAX; i++)
        if (node->holders[first + i].instance == instance && node->holders[first + i].tenant->pod[0])
            own[count++] = node->holders[first + i].tenant;
    return count;
}

/* A job that has a process here needs no other row: leaves those that have none. Returns how many are left. */
static size_t without_present(struct hec_node *node, size_t processes, size_t listed) {
    size_t kept = 0;
    for (size_t i = 0; i < listed; i++) {
        const struct hec_shares_holder *holder = &node->holders[processes + i];
        bool present = false;
        for (size_t k = 0; k < processes && holder->tenant->job[0]; k++)
            present |= strcmp(node->tenants[k].job, holder->tenant->job) == 0 && !node->tenants[k].claimed &&
                       node->holders[k].instance == holder->instance;
        if (!present)
            node->holders[processes + kept++] = *holder;
    }
    return kept;
}

size_t hec_node_list_tenants(struct hec_node *node, struct hec_node_device *device, int64_t now_ns) {
    size_t count = (size_t)device->process_count, allocated = list_allocated(node, device, count);
    for (size_t i = 0; i < count; i++) {
        const struct hec_node_process *process = &device->processes[i];
        int instance = device->instance_count ? process->now.gpu_instance : HEC_SHARES_WHOLE;
        const struct hec_tenant *own[HEC_NODE_PODS_MAX];
        size_t own_count = holders_of(node, count, allocated, instance, own);
        memset(&node->tenants[i], 0, sizeof node->tenants[i]);
        if (node->identity)
            hec_identity_of(node->identity, process->now.pid, own, own_count, now_ns, &node->tenants[i]);
        node->holders[i] =
            (struct hec_shares_holder){.tenant = &node->tenants[i], .context = true, .instance = instance};
    }
    return count + without_present(node, count, allocated);
}

size_t hec_node_list_holders(struct hec_node *node, struct hec_node_device *device, int util, int64_t now_ns) {
    size_t count = (size_t)device->process_count, all = hec_node_list_tenants(node, device, now_ns);
    bool known = false, fresh = false;
    for (size_t i = 0; i < count; i++) {
        const struct hec_node_process *process = &device->processes[i];
        known |= process->now.sm_util_samples > 0;
        fresh |= process->now.sm_util_samples > process->util_samples;
    }
    for (size_t i = 0; i < count; i++) {
        int permille = used(&device->processes[i], fresh, util != 0);
        node->holders[i].sm_permille = known ? permille : HEC_SHARES_UNKNOWN;
    }
    hec_node_name_causes(node, device, node->holders, all, now_ns);
    return all;
}
