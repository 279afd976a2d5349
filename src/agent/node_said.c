/* What is said of a device, and of who holds it: its joules, and why they do not do more: by jobs that were analysed, else by telemetry. */
#include "agent/node.h"
#include "agent/waste.h"

#include <math.h>

int64_t hec_node_shown_mj(const struct hec_node_device *device, enum hec_agent_state state) {
    return device->total[HEC_NODE_BUSY_MJ + state] - hec_late_of(device->late, state);
}

int64_t hec_node_shown_energy_mj(const struct hec_node_device *device) {
    int64_t sum_mj = 0;
    for (int state = 0; state < HEC_AGENT_STATES; state++)
        sum_mj += hec_node_shown_mj(device, (enum hec_agent_state)state);
    return sum_mj;
}

void hec_node_diagnose(struct hec_node *node, const struct hec_tenant *tenant, uint64_t devices, int cause) {
    uint64_t id = hec_tenant_id(tenant);
    int at = 0;
    pthread_mutex_lock(&node->lock);
    while (at < node->diagnosed_count && node->diagnosed[at].tenant != id)
        at++;
    if (cause < 0 && at < node->diagnosed_count)
        node->diagnosed[at] = node->diagnosed[--node->diagnosed_count];
    else if (cause >= 0 && at < HEC_NODE_DIAGNOSED_MAX) {
        node->diagnosed_count += at == node->diagnosed_count;
        node->diagnosed[at] = (struct hec_node_diagnosed){id, devices, cause};
    }
    pthread_mutex_unlock(&node->lock);
}

static const struct hec_node_diagnosed *diagnosed_of(const struct hec_node *node, const struct hec_node_device *device,
                                                     const struct hec_tenant *tenant) {
    uint64_t id = tenant ? hec_tenant_id(tenant) : 0, bit = UINT64_C(1) << (device->info.index % 64);
    for (int i = 0; i < node->diagnosed_count; i++)
        if (node->diagnosed[i].devices & bit && (!tenant || node->diagnosed[i].tenant == id))
            return &node->diagnosed[i];
    return NULL;
}

static int cause_of_verdict(int verdict) {
    static const int causes[HEC_AGENT_VERDICTS] = {
        [HEC_AGENT_VERDICT_HEALTHY] = HEC_CAUSE_NONE,          [HEC_AGENT_VERDICT_STARVED] = HEC_WASTE_STARVED,
        [HEC_AGENT_VERDICT_OVERHEAD_BOUND] = HEC_CAUSE_LAUNCH, [HEC_AGENT_VERDICT_TRANSFER_BOUND] = HEC_CAUSE_COPY,
        [HEC_AGENT_VERDICT_THROTTLED] = HEC_CAUSE_THROTTLE,    [HEC_AGENT_VERDICT_IDLE_CLOCKS] = HEC_WASTE_CLOCKS,
        [HEC_AGENT_VERDICT_IDLE_ALLOCATED] = HEC_CAUSE_IDLE,   [HEC_AGENT_VERDICT_IDLE_FREE] = HEC_WASTE_UNKNOWN,
    };
    return verdict == HEC_VERDICT_UNKNOWN ? HEC_WASTE_UNKNOWN : causes[verdict];
}

/* By the last division. */
static bool holds_now(const struct hec_node_device *device, size_t row) {
    return hec_shares_row(device->shares, row)->held_ns >= device->settled_ns;
}

static int tenants_now(const struct hec_node_device *device) {
    int count = 0;
    for (size_t row = HEC_SHARES_NAMED; device->shares && row < hec_shares_count(device->shares); row++)
        count += holds_now(device, row);
    return count;
}

bool hec_node_holds(const struct hec_node_device *device, const struct hec_tenant *tenant) {
    for (size_t row = HEC_SHARES_NAMED; device->shares && row < hec_shares_count(device->shares); row++)
        if (hec_tenant_equal(&hec_shares_row(device->shares, row)->tenant, tenant))
            return holds_now(device, row);
    return false;
}

static struct hec_node_said says(const struct hec_node *node, const struct hec_node_device *device,
                                 const struct hec_tenant *tenant, int tenants, int64_t now_ns) {
    const struct hec_node_diagnosed *job = diagnosed_of(node, device, tenant);
    struct hec_node_said said = {HEC_WASTE_UNKNOWN, false, NAN};
    if (job)
        return (struct hec_node_said){job->cause, true, NAN};
    int verdict =
        device->up ? hec_verdict_of(&device->verdict, &device->info, now_ns, &said.sure) : HEC_VERDICT_UNKNOWN;
    said.cause = cause_of_verdict(verdict);
    if (tenant && tenants > 1 && said.cause != HEC_CAUSE_IDLE && said.cause != HEC_WASTE_CLOCKS)
        return (struct hec_node_said){HEC_WASTE_UNKNOWN, false, NAN};
    return said;
}

struct hec_node_said hec_node_says(const struct hec_node *node, const struct hec_node_device *device,
                                   const struct hec_tenant *tenant, int64_t now_ns) {
    return says(node, device, tenant, tenants_now(device), now_ns);
}

void hec_node_name_causes(const struct hec_node *node, const struct hec_node_device *device,
                          struct hec_shares_holder *holders, size_t count, int64_t now_ns) {
    int tenants = 0;
    bool context = false;
    for (size_t i = 0; i < count; i++) {
        size_t first = 0;
        while (first < i && !hec_tenant_equal(holders[first].tenant, holders[i].tenant))
            first++;
        tenants += first == i;
        context |= holders[i].context;
    }
    for (size_t i = 0; i < count; i++)
        holders[i].cause = context && !holders[i].context
                               ? HEC_CAUSE_IDLE
                               : says(node, device, holders[i].tenant, tenants, now_ns).cause;
}
