#include "agent/page.h"

#include "agent/power.h"
#include "base/clock.h"
#include "model/throttle.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LABELS_MAX 24
#define AGE_LEAST_S 10 /* of a counter that is fresh nobody asks; the slowest is read every 5 s */

struct maker {
    struct hec_node *node;
    const struct hec_page_options *options;
    const struct hec_page_agent *agent;
    struct hec_exposition out;
    int64_t now_ns;
    const struct hec_tenant
        *pods[HEC_DEVICE_MAX][HEC_GPU_INSTANCES_MAX]; /* that hold an instance, or an undivided device ([0]), alone */
};

/* The labels of one sample; what they point to lives as long. */
struct labels {
    struct hec_label label[LABELS_MAX];
    size_t count;
    char gpu[16], device[24], instance[16], xid[24], model[sizeof((struct hec_device *)0)->name];
};

static void add_label(struct labels *labels, const char *name, const char *value) {
    if (labels->count < LABELS_MAX)
        labels->label[labels->count++] = (struct hec_label){name, value};
}

static void label_device(const struct hec_node_device *device, struct labels *labels) {
    int ordinal = device->info.index % HEC_VENDOR_DEVICES_MAX;
    labels->count = 0;
    snprintf(labels->gpu, sizeof labels->gpu, "%d", ordinal);
    snprintf(labels->device, sizeof labels->device, "%s%d", hec_vendor_of_device(device->info.index)->name, ordinal);
    add_label(labels, "gpu", labels->gpu);
    add_label(labels, "UUID", device->info.uuid);
}

static void label_identity(const struct hec_node_device *device, struct labels *labels, const char *model,
                           bool dashes) {
    memcpy(labels->model, device->info.name, sizeof labels->model);
    for (char *blank = labels->model; dashes && (blank = strchr(blank, ' '));)
        *blank = '-';
    add_label(labels, "pci_bus_id", device->info.pci_bus_id);
    add_label(labels, "device", labels->device);
    add_label(labels, model, labels->model);
}

static void label_xid(struct labels *labels, const char *name, int64_t number) {
    snprintf(labels->xid, sizeof labels->xid, "%" PRId64, number);
    add_label(labels, name, labels->xid);
}

static void label_instance(const struct hec_gpu_instance *instance, struct labels *labels) {
    snprintf(labels->instance, sizeof labels->instance, "%d", instance->id);
    add_label(labels, "GPU_I_PROFILE", instance->profile);
    add_label(labels, "GPU_I_ID", labels->instance);
}

static void label_pod(struct labels *labels, const struct hec_tenant *tenant) {
    add_label(labels, "namespace", tenant->pod_namespace);
    add_label(labels, "pod", tenant->pod);
    add_label(labels, "container", tenant->container);
}

static void label_tenant(struct labels *labels, const struct hec_tenant *tenant) {
    label_pod(labels, tenant);
    add_label(labels, "hpc_job", tenant->job);
    add_label(labels, "hpc_step", tenant->step);
    add_label(labels, "hpc_array_task", tenant->array_task);
    add_label(labels, "user", tenant->user);
    add_label(labels, "command", tenant->command);
}

static const char *said_by(const struct hec_node_said *said) {
    return said->by_job ? "job" : "telemetry";
}

/* Whether that metric is on the page at all. */
static bool shown(const struct maker *m, enum hec_agent_metric metric) {
    return m->options->all_series || !hec_agent_metric_info(metric)->more;
}

/* Time and joules of what never was are left out: of most devices most of these. */
static bool never(const struct maker *m, int64_t total) {
    return total == 0 && !m->options->all_series;
}

static void begin(struct maker *m, enum hec_agent_metric metric) {
    const struct hec_agent_metric_info *info = hec_agent_metric_info(metric);
    hec_exposition_family(&m->out, info->name, info->kind, info->unit, info->help);
}

/* Every device that was seen. */
#define FOR_DEVICES(m, device_)                                                                                        \
    for (int index_ = 0; index_ < HEC_DEVICE_MAX; index_++)                                                            \
        for (const struct hec_node_device *device_ = (m)->node->devices[index_]; device_ && device_->seen;             \
             device_ = NULL)

static double value_of(const struct maker *m, const struct hec_node_device *device, enum hec_metric metric) {
    return hec_node_value_of(m->node, device, metric, m->now_ns);
}

static double total_of(const struct hec_node_device *device, enum hec_metric metric) {
    switch ((int)metric) {
    case HEC_GPM_PCIE_TX:
        return (double)device->total[HEC_NODE_PCIE_TX] / 1024;
    case HEC_GPM_PCIE_RX:
        return (double)device->total[HEC_NODE_PCIE_RX] / 1024;
    case HEC_GPM_NVLINK_TX:
        return (double)device->total[HEC_NODE_NVLINK_TX] / 1024;
    case HEC_GPM_NVLINK_RX:
        return (double)device->total[HEC_NODE_NVLINK_RX] / 1024;
    default:
        return NAN;
    }
}

/* ---- dcgm-exporter's ---- */

static double combine(const struct hec_dcgm_field *field, double value, double more) {
    if (field->how == HEC_DCGM_SHARE)
        return value + more > 0 ? value / (value + more) * field->factor : NAN;
    return (value + more) * field->factor;
}

static double devices_of(const struct maker *m, const struct hec_vendor_info *vendor) {
    double count = 0;
    FOR_DEVICES(m, device)
    count += hec_vendor_of_device(device->info.index) == vendor;
    return count;
}

static double field_value(const struct maker *m, const struct hec_node_device *device,
                          const struct hec_dcgm_field *field) {
    if (field->how == HEC_DCGM_COUNT)
        return devices_of(m, hec_vendor_of_device(device->info.index));
    if (field->how == HEC_DCGM_NODE)
        return device->throttles ? (double)device->total[field->total] * field->factor : NAN;
    if (field->how == HEC_DCGM_POWER_DEFAULT && device->info.power_limit_default_mw > 0)
        return (double)device->info.power_limit_default_mw * field->factor;
    if (field->metric == HEC_DCGM_NONE)
        return NAN;
    bool total = field->how == HEC_DCGM_TOTAL;
    /* a total only of what the device has: one that was never read stays away */
    double value = value_of(m, device, field->metric), more = 0;
    if (total && !isnan(value))
        value = total_of(device, field->metric);
    if (field->plus != HEC_DCGM_NONE) {
        more = value_of(m, device, field->plus);
        if (total && !isnan(more))
            more = total_of(device, field->plus);
    }
    return combine(field, value, more);
}

/* What a divided device has by GPU instance, and by instance alone: memory and hardware counters. */
static bool by_instance(const struct hec_node_device *device, const struct hec_dcgm_field *field) {
    enum hec_metric metric = field->metric;
    return device->instance_count &&
           ((metric >= HEC_GPM_GR_ACTIVE && metric <= HEC_GPM_NVLINK_TX) || metric == HEC_GPU_MEM_USED ||
            metric == HEC_GPU_MEM_FREE || metric == HEC_GPU_MEM_RESERVED || metric == HEC_GPU_MEM_TOTAL);
}

static double instance_metric(const struct hec_gpu_instance *instance, enum hec_metric metric) {
    int64_t used = instance->memory_used_kib, free = instance->memory_free_kib,
            reserved = instance->memory_reserved_kib,
            value = metric == HEC_GPU_MEM_USED        ? used
                    : metric == HEC_GPU_MEM_FREE      ? free
                    : metric == HEC_GPU_MEM_RESERVED  ? reserved
                    : metric == HEC_GPU_MEM_TOTAL     ? (used < 0 ? -1 : used + free + (reserved > 0 ? reserved : 0))
                    : instance->until_ns == INT64_MIN ? -1
                                                      : instance->counters[metric - HEC_GPM_GR_ACTIVE];
    return value < 0 ? NAN : (double)value;
}

static double instance_value(const struct hec_gpu_instance *instance, const struct hec_dcgm_field *field) {
    if (field->how == HEC_DCGM_TOTAL)
        return NAN;
    return combine(field, instance_metric(instance, field->metric),
                   field->plus == HEC_DCGM_NONE ? 0 : instance_metric(instance, field->plus));
}

static const char *label_text(const struct hec_node_device *device, const struct hec_dcgm_field *field) {
    return (const char *)&device->info + field->label;
}

static void label_dcgm(const struct maker *m, const struct hec_node_device *device,
                       const struct hec_gpu_instance *instance, struct labels *labels) {
    const struct hec_dcgm_list *list = m->options->dcgm;
    label_device(device, labels);
    label_identity(device, labels, "modelName", m->options->dashes);
    if (instance)
        label_instance(instance, labels);
    add_label(labels, m->options->hostname_label, m->options->hostname);
    for (size_t i = 0; i < list->count; i++)
        if (list->chosen[i].field->how == HEC_DCGM_LABEL)
            add_label(labels, list->chosen[i].field->name, label_text(device, list->chosen[i].field));
}

/* One sample, or one for each batch job that holds it by the map of jobs. */
static void put_dcgm_sample(struct maker *m, const struct hec_node_device *device, int instance,
                            const struct labels *labels, double value) {
    const struct hec_tenant *jobs[HEC_NODE_PODS_MAX];
    size_t count = hec_node_jobs(m->node, device, instance, jobs);
    if (count == 0)
        hec_exposition_sample(&m->out, labels->label, labels->count, value);
    for (size_t i = 0; i < count; i++) {
        struct labels of_job = *labels;
        add_label(&of_job, "hpc_job", jobs[i]->job);
        hec_exposition_sample(&m->out, of_job.label, of_job.count, value);
    }
}

static void put_dcgm_instances(struct maker *m, const struct hec_node_device *device,
                               const struct hec_dcgm_field *field) {
    for (int i = 0; i < device->instance_count; i++) {
        const struct hec_gpu_instance *instance = &device->instances[i].now;
        struct labels labels;
        if (!hec_node_instance_first(device, i))
            continue;
        const struct hec_tenant *pod = m->pods[device->info.index][i];
        label_dcgm(m, device, instance, &labels);
        if (pod)
            label_pod(&labels, pod);
        put_dcgm_sample(m, device, instance->id, &labels, instance_value(instance, field));
    }
}

/* Of a device that is not divided it is the first. */
static void find_pods(struct maker *m) {
    FOR_DEVICES(m, device) {
        const struct hec_tenant **pods = m->pods[device->info.index];
        if (!device->instance_count)
            pods[0] = hec_node_instance_pod(m->node, device, HEC_SHARES_WHOLE);
        for (int i = 0; i < device->instance_count; i++)
            pods[i] = hec_node_instance_pod(m->node, device, device->instances[i].now.id);
    }
}

static void put_dcgm(struct maker *m) {
    const struct hec_dcgm_list *list = m->options->dcgm;
    for (size_t i = 0; i < list->count; i++) {
        const struct hec_dcgm_chosen *chosen = &list->chosen[i];
        if (chosen->kind == HEC_FAMILY_INFO)
            continue;
        hec_exposition_family(&m->out, chosen->field->name, chosen->kind, NULL, chosen->help);
        FOR_DEVICES(m, device) {
            struct labels labels;
            if (by_instance(device, chosen->field) && m->options->devices.instances)
                put_dcgm_instances(m, device, chosen->field);
            if (by_instance(device, chosen->field) || !hec_dcgm_shows(&m->options->devices, device->info.index))
                continue;
            label_dcgm(m, device, NULL, &labels);
            const struct hec_tenant *pod = device->instance_count ? NULL : m->pods[device->info.index][0];
            if (pod)
                label_pod(&labels, pod);
            double value = field_value(m, device, chosen->field);
            if (chosen->field->metric == HEC_GPU_XID && !isnan(value)) {
                label_xid(&labels, "err_code", (int64_t)value);
                add_label(&labels, "err_msg", hec_xid_text((int64_t)value));
            }
            put_dcgm_sample(m, device, HEC_SHARES_WHOLE, &labels, value);
        }
    }
}

/* Whether the device, or a GPU instance of it, shows the field. */
static bool gives(const struct maker *m, const struct hec_node_device *device, const struct hec_dcgm_field *field) {
    if (field->how == HEC_DCGM_LABEL)
        return label_text(device, field)[0] != '\0';
    if (!by_instance(device, field))
        return !isnan(field_value(m, device, field));
    for (int i = 0; i < device->instance_count; i++)
        if (!isnan(instance_value(&device->instances[i].now, field)))
            return true;
    return false;
}

enum hec_page_absence hec_page_absent(struct hec_node *node, const struct hec_page_options *options, int index,
                                      int64_t now_ns, int64_t since_ns, struct hec_buf *out) {
    struct maker m = {.node = node, .options = options, .now_ns = now_ns};
    const struct hec_dcgm_list *list = options->dcgm;
    hec_buf_clear(out);
    pthread_mutex_lock(&node->lock);
    const struct hec_node_device *device = node->devices[index];
    bool seen = device && device->seen, judged = seen && device->up && device->up_ns <= since_ns;
    for (size_t i = 0; judged && i < list->count; i++)
        if (list->chosen[i].field->set != HEC_DCGM_OLD && !gives(&m, device, list->chosen[i].field))
            hec_buf_printf(out, "%s%s", out->length ? ", " : "", list->chosen[i].field->name);
    pthread_mutex_unlock(&node->lock);
    return judged ? HEC_PAGE_JUDGED : seen ? HEC_PAGE_LATER : HEC_PAGE_NO_DEVICE;
}

/* ---- our own ---- */

static void put_device(struct maker *m, enum hec_agent_metric metric,
                       double (*value)(const struct maker *, const struct hec_node_device *)) {
    if (!shown(m, metric))
        return;
    begin(m, metric);
    FOR_DEVICES(m, device) {
        struct labels labels;
        label_device(device, &labels);
        if (metric == HEC_AGENT_METRIC_DEVICE_INFO) {
            label_identity(device, &labels, "model", false);
            add_label(&labels, "driver", device->info.driver);
        }
        hec_exposition_sample(&m->out, labels.label, labels.count, value(m, device));
    }
}

static double one(const struct maker *m, const struct hec_node_device *device) {
    (void)m;
    (void)device;
    return 1;
}
static double up(const struct maker *m, const struct hec_node_device *device) {
    (void)m;
    return device->up;
}
static double energy(const struct maker *m, const struct hec_node_device *device) {
    (void)m;
    bool known = device->counter_ns != INT64_MIN;
    int64_t mj = m->options->current ? device->total[HEC_NODE_ENERGY_MJ] : hec_node_shown_energy_mj(device);
    return known ? (double)mj / 1e3 : NAN;
}
static double seconds(const struct maker *m, const struct hec_node_device *device) {
    int64_t sum_ns = 0;
    (void)m;
    for (int state = 0; state < HEC_AGENT_STATES; state++)
        sum_ns += device->total[HEC_NODE_BUSY_NS + state];
    return (double)sum_ns / 1e9;
}
static double energy_age(const struct maker *m, const struct hec_node_device *device) {
    double age_s = device->counter_ns == INT64_MIN ? NAN : (double)(m->now_ns - device->counter_ns) / 1e9;
    return age_s >= AGE_LEAST_S || m->options->all_series ? age_s : NAN;
}
static double resets(const struct maker *m, const struct hec_node_device *device) {
    (void)m;
    return device->counter_ns == INT64_MIN ? NAN : (double)device->total[HEC_NODE_RESETS];
}
static double power(const struct maker *m, const struct hec_node_device *device) {
    return value_of(m, device, HEC_GPU_POWER) / 1e3;
}
static double power_limit(const struct maker *m, const struct hec_node_device *device) {
    return value_of(m, device, HEC_GPU_POWER_LIMIT) / 1e3;
}

/* One family with a label that has a list of values, each of which is a total of the node. */
static void put_totals(struct maker *m, enum hec_agent_metric metric, const char *label, int count, int first,
                       double factor, const char *(*name)(int)) {
    begin(m, metric);
    FOR_DEVICES(m, device) {
        if (metric == HEC_AGENT_METRIC_DEVICE_STATE_JOULES && device->counter_ns == INT64_MIN)
            continue;
        if (metric == HEC_AGENT_METRIC_DEVICE_THROTTLED && !device->throttles)
            continue;
        bool late = metric == HEC_AGENT_METRIC_DEVICE_STATE_JOULES && !m->options->current;
        for (int i = 0; i < count; i++) {
            struct labels labels;
            /* a device is idle or busy sooner or later: these are there from the beginning */
            bool sooner = metric != HEC_AGENT_METRIC_DEVICE_THROTTLED && i != HEC_AGENT_STATE_UNOBSERVED;
            if (!sooner && never(m, device->total[first + i]))
                continue;
            int64_t total = late ? hec_node_shown_mj(device, (enum hec_agent_state)i) : device->total[first + i];
            label_device(device, &labels);
            add_label(&labels, label, name(i));
            hec_exposition_sample(&m->out, labels.label, labels.count, (double)total * factor);
        }
    }
}

static const char *state_name(int state) {
    return hec_agent_state_name((enum hec_agent_state)state);
}
static const char *throttle_name(int reason) {
    return hec_throttle_info((enum hec_throttle)reason)->name;
}

static void put_share(struct maker *m, const struct hec_node_device *device, const struct hec_tenant *tenant,
                      enum hec_shares_part part, double uj) {
    struct labels labels;
    label_device(device, &labels);
    add_label(&labels, "part", hec_agent_part_name((enum hec_agent_part)part));
    label_tenant(&labels, tenant);
    hec_exposition_sample(&m->out, labels.label, labels.count, uj / 1e6);
}

/* Of each tenant that ever had some: the sum of all is the device's counter. One that is new has 0 at first (agent/late.h). */
static void put_energy(struct maker *m) {
    begin(m, HEC_AGENT_METRIC_ENERGY);
    FOR_DEVICES(m, device)
    for (size_t row = 0; device->shares && row < hec_shares_count(device->shares); row++) {
        const struct hec_shares_row *share = hec_shares_row(device->shares, row);
        for (int part = 0; part < HEC_SHARES_PART_COUNT; part++)
            if (share->uj[part] != 0)
                put_share(
                    m, device, &share->tenant, (enum hec_shares_part)part,
                    (double)(m->options->current ? share->uj[part] : hec_shares_shown_uj(device->shares, row, part)));
    }
    if (!shown(m, HEC_AGENT_METRIC_ENERGY_ERROR))
        return;
    begin(m, HEC_AGENT_METRIC_ENERGY_ERROR);
    FOR_DEVICES(m, device)
    for (size_t row = 0; device->shares && row < hec_shares_count(device->shares); row++) {
        const struct hec_shares_row *share = hec_shares_row(device->shares, row);
        if (share->uj[HEC_SHARES_ACTIVE] != 0)
            put_share(m, device, &share->tenant, HEC_SHARES_ACTIVE, hec_share_error_bound_uj(&share->error));
    }
}

static double idle_power(const struct maker *m, const struct hec_node_device *device) {
    return hec_node_idle_w(m->node, device, m->now_ns);
}

static void put_devices(struct maker *m) {
    put_device(m, HEC_AGENT_METRIC_DEVICE_INFO, one);
    put_device(m, HEC_AGENT_METRIC_DEVICE_UP, up);
    put_device(m, HEC_AGENT_METRIC_DEVICE_ENERGY, energy);
    put_device(m, HEC_AGENT_METRIC_DEVICE_SECONDS, seconds);
    put_device(m, HEC_AGENT_METRIC_DEVICE_ENERGY_AGE, energy_age);
    put_device(m, HEC_AGENT_METRIC_DEVICE_ENERGY_RESETS, resets);
    put_device(m, HEC_AGENT_METRIC_DEVICE_POWER, power);
    put_device(m, HEC_AGENT_METRIC_DEVICE_POWER_LIMIT, power_limit);
    put_device(m, HEC_AGENT_METRIC_DEVICE_IDLE_POWER, idle_power);
    put_energy(m);
    put_totals(m, HEC_AGENT_METRIC_DEVICE_STATE_JOULES, "state", HEC_AGENT_STATES, HEC_NODE_BUSY_MJ, 1e-3, state_name);
    put_totals(m, HEC_AGENT_METRIC_DEVICE_STATE_SECONDS, "state", HEC_AGENT_STATES, HEC_NODE_BUSY_NS, 1e-9, state_name);
    put_totals(m, HEC_AGENT_METRIC_DEVICE_THROTTLED, "reason", HEC_THROTTLE_UNASKED, HEC_NODE_THROTTLED_POWER_NS, 1e-9,
               throttle_name);
}

/* ---- what they make of the devices ---- */

static void put_use(struct maker *m, const struct hec_waste_row *row, const char *label, const char *value,
                    double amount, const char *by) {
    struct labels labels = {.count = 0};
    label_tenant(&labels, row->of);
    add_label(&labels, label, value);
    add_label(&labels, "by", by);
    hec_exposition_sample(&m->out, labels.label, labels.count, amount);
}

static void put_waste(struct maker *m) {
    struct hec_waste_row *rows = calloc(HEC_WASTE_TENANTS, sizeof *rows);
    int count = rows ? hec_waste_rows(m->node, rows) : 0;
    begin(m, HEC_AGENT_METRIC_WASTED);
    for (int i = 0; i < count; i++)
        for (int cause = 0; cause < HEC_WASTE_COUNT; cause++)
            if (rows[i].use.wasted_uj[cause] > 0)
                put_use(m, &rows[i], "cause", hec_waste_name(cause), (double)rows[i].use.wasted_uj[cause] / 1e6, NULL);
    begin(m, HEC_AGENT_METRIC_TENANT_SECONDS);
    for (int i = 0; i < count; i++) {
        const struct hec_use_made *use = &rows[i].use;
        if (use->held_ns == 0)
            continue;
        put_use(m, &rows[i], "use", "worked", (double)use->worked_ns / 1e9, NULL);
        put_use(m, &rows[i], "use", "held", (double)(use->held_ns - use->worked_ns) / 1e9, NULL);
    }
    begin(m, HEC_AGENT_METRIC_TENANT_VERDICT);
    for (int i = 0; i < count; i++) {
        struct hec_node_said said = hec_waste_said(m->node, &rows[i], m->now_ns);
        if (said.cause != HEC_WASTE_UNKNOWN)
            put_use(m, &rows[i], "cause", hec_waste_name(said.cause), said.by_job ? 1 : said.sure, said_by(&said));
    }
    free(rows);
}

/* A job's cause goes before the verdict of telemetry; "" where neither is known. */
static const char *verdict_name(const struct maker *m, const struct hec_node_device *device,
                                const struct hec_node_said *said) {
    if (said->by_job)
        return said->cause == HEC_CAUSE_NONE ? hec_agent_verdict_name(HEC_AGENT_VERDICT_HEALTHY)
                                             : hec_waste_name(said->cause);
    int verdict = device->up ? hec_verdict_of(&device->verdict, &device->info, m->now_ns, NULL) : HEC_VERDICT_UNKNOWN;
    return verdict == HEC_VERDICT_UNKNOWN ? "" : hec_agent_verdict_name((enum hec_agent_verdict)verdict);
}

static void put_verdicts(struct maker *m) {
    begin(m, HEC_AGENT_METRIC_DEVICE_VERDICT);
    FOR_DEVICES(m, device) {
        struct labels labels;
        struct hec_node_said said = hec_node_says(m->node, device, NULL, m->now_ns);
        const char *verdict = verdict_name(m, device, &said);
        if (!verdict[0])
            continue;
        label_device(device, &labels);
        add_label(&labels, "verdict", verdict);
        add_label(&labels, "by", said_by(&said));
        hec_exposition_sample(&m->out, labels.label, labels.count, 1);
    }
    begin(m, HEC_AGENT_METRIC_DEVICE_THROTTLE_LOST);
    FOR_DEVICES(m, device) {
        struct labels labels;
        if (!device->throttles || never(m, device->total[HEC_NODE_THROTTLE_LOST_UJ]))
            continue;
        label_device(device, &labels);
        hec_exposition_sample(&m->out, labels.label, labels.count,
                              (double)device->total[HEC_NODE_THROTTLE_LOST_UJ] / 1e6);
    }
}

static void put_xids(struct maker *m) {
    begin(m, HEC_AGENT_METRIC_DEVICE_XIDS);
    FOR_DEVICES(m, device) {
        const struct hec_xids *xids = &device->xids;
        struct labels labels;
        for (int i = 0; i < xids->count; i++) {
            label_device(device, &labels);
            label_xid(&labels, "xid", xids->seen[i].number);
            hec_exposition_sample(&m->out, labels.label, labels.count, (double)xids->seen[i].times);
        }
        if ((xids->count == 0 && isnan(value_of(m, device, HEC_GPU_XID))) || never(m, xids->others))
            continue;
        label_device(device, &labels);
        add_label(&labels, "xid", "other");
        hec_exposition_sample(&m->out, labels.label, labels.count, (double)xids->others);
    }
}

static void put_host(struct maker *m) {
    begin(m, HEC_AGENT_METRIC_HOST_ENERGY);
    for (int i = 0; i < m->node->domain_count; i++) {
        const struct hec_node_domain *domain = &m->node->domains[i];
        char name[32];
        snprintf(name, sizeof name, "%s-%d", domain->metric == HEC_RAPL_DRAM_ENERGY ? "dram" : "package",
                 domain->index);
        hec_exposition_sample(&m->out, &(struct hec_label){"domain", name}, 1, (double)domain->total_uj / 1e6);
    }
}

static void put_one(struct maker *m, enum hec_agent_metric metric, double value) {
    begin(m, metric);
    if (value >= 0)
        hec_exposition_sample(&m->out, NULL, 0, value);
}

/* ---- the budget of power ---- */

static void put_power(struct maker *m) {
    struct hec_power_said said;
    hec_power_share_read(m->options->power, &said);
    put_one(m, HEC_AGENT_METRIC_POWER_BUDGET, said.budget_w);
    put_one(m, HEC_AGENT_METRIC_POWER_SHORT, said.short_w);
    put_one(m, HEC_AGENT_METRIC_POWER_OVER, said.over_s);
    begin(m, HEC_AGENT_METRIC_DEVICE_POWER_CLASS);
    FOR_DEVICES(m, device) {
        int index = device->info.index;
        if (!said.devices[index].known || said.devices[index].power_class == HEC_POWER_CLASS_COUNT)
            continue;
        struct labels labels = {.count = 0};
        label_device(device, &labels);
        add_label(&labels, "class", hec_power_class_name(said.devices[index].power_class));
        hec_exposition_sample(&m->out, labels.label, labels.count, 1);
    }
}

/* ---- jobs ---- */

/* One sample of a tenant's jobs, with a label more (NULL: none). */
static void put_job(struct maker *m, const struct hec_causes_job *job, const char *name, const char *value,
                    double amount) {
    struct labels labels = {.count = 0};
    label_tenant(&labels, job->tenant);
    if (name)
        add_label(&labels, name, value);
    hec_exposition_sample(&m->out, labels.label, labels.count, amount);
}

/* A counter of a tenant whose first window is new begins with 0. */
static double counted(const struct maker *m, const struct hec_causes_job *job, double amount) {
    return job->fresh && !m->options->current ? 0 : amount;
}

static void put_job_states(struct maker *m, enum hec_agent_metric metric, const struct hec_causes_job *jobs,
                           size_t count) {
    bool joules = metric == HEC_AGENT_METRIC_JOB_STATE_JOULES;
    begin(m, metric);
    for (size_t i = 0; i < count; i++)
        for (int state = 0; state < HEC_STATE_COUNT; state++)
            if (jobs[i].seconds[state] > 0 && (jobs[i].priced || !joules))
                put_job(m, &jobs[i], "state", hec_state_name((enum hec_state)state),
                        counted(m, &jobs[i], joules ? jobs[i].joules[state] : jobs[i].seconds[state]));
}

static void put_jobs(void *context, const struct hec_causes_job *jobs, size_t count) {
    struct maker *m = context;
    put_job_states(m, HEC_AGENT_METRIC_JOB_STATE_JOULES, jobs, count);
    put_job_states(m, HEC_AGENT_METRIC_JOB_STATE_SECONDS, jobs, count);
    begin(m, HEC_AGENT_METRIC_JOB_SECONDS);
    for (size_t i = 0; i < count; i++)
        put_job(m, &jobs[i], NULL, NULL, counted(m, &jobs[i], jobs[i].device_s));
    begin(m, HEC_AGENT_METRIC_JOB_RECOVERABLE);
    for (size_t i = 0; i < count; i++)
        if (jobs[i].running && jobs[i].cause >= 0)
            put_job(m, &jobs[i], "cause", hec_cause_name((enum hec_cause)jobs[i].cause), jobs[i].recoverable);
    begin(m, HEC_AGENT_METRIC_JOB_UNITS);
    for (size_t i = 0; i < count; i++)
        for (int unit = 0; unit < jobs[i].unit_count; unit++)
            put_job(m, &jobs[i], "unit", jobs[i].units[unit].name, counted(m, &jobs[i], jobs[i].units[unit].count));
}

/* ---- itself ---- */

static void put_agent(struct maker *m) {
    begin(m, HEC_AGENT_METRIC_BUILD_INFO);
    hec_exposition_sample(&m->out, &(struct hec_label){"version", HEC_VERSION}, 1, 1);
    put_one(m, HEC_AGENT_METRIC_AGENT_CPU, m->agent->cpu_seconds);
    put_one(m, HEC_AGENT_METRIC_AGENT_RESIDENT, m->agent->resident_bytes);
    /* of rounds that came: a sum with the one that is due may fall */
    put_one(m, HEC_AGENT_METRIC_AGENT_LATE, (double)hec_rounds_late_ns(&m->node->rounds, 0) / 1e9);
    put_one(m, HEC_AGENT_METRIC_PROCESS_CPU, m->agent->process.cpu_seconds);
    put_one(m, HEC_AGENT_METRIC_PROCESS_RESIDENT, m->agent->process.resident_bytes);
    put_one(m, HEC_AGENT_METRIC_PROCESS_VIRTUAL, m->agent->process.virtual_bytes);
    put_one(m, HEC_AGENT_METRIC_PROCESS_FDS, m->agent->process.open_fds);
    put_one(m, HEC_AGENT_METRIC_PROCESS_MAX_FDS, m->agent->process.max_fds);
    put_one(m, HEC_AGENT_METRIC_PROCESS_START, m->agent->process.started_s);
    put_one(m, HEC_AGENT_METRIC_AGENT_INTERVAL, (double)m->node->interval_ns / 1e9);
    put_one(m, HEC_AGENT_METRIC_AGENT_STATE_SAVED, m->agent->state_saved);
    begin(m, HEC_AGENT_METRIC_AGENT_DROPPED);
    for (int i = 0; i < m->agent->dropped_count; i++)
        hec_exposition_sample(&m->out, &(struct hec_label){"what", m->agent->dropped[i].what}, 1,
                              (double)m->agent->dropped[i].count);
}

void hec_page_drop(struct hec_page_agent *agent, const char *what, uint64_t count) {
    if (agent->dropped_count < HEC_PAGE_DROPPED_MAX) {
        agent->dropped[agent->dropped_count].what = what;
        agent->dropped[agent->dropped_count++].count = count;
    }
}

int hec_page_make(struct hec_node *node, const struct hec_page_options *options, const struct hec_page_agent *agent,
                  enum hec_exposition_format format, int64_t now_ns, struct hec_buf *out) {
    struct maker m = {.node = node, .options = options, .agent = agent, .now_ns = now_ns};
    hec_buf_clear(out);
    struct hec_label resource[] = {{"service.name", "hec-agent"}, {"host.name", options->hostname}};
    if (format == HEC_EXPOSITION_OTLP)
        hec_exposition_begin_otlp(&m.out, out, resource, 2, hec_clock_wall_ns());
    else
        hec_exposition_begin(&m.out, out, format);
    pthread_mutex_lock(&node->lock);
    FOR_DEVICES(&m, device) {
        if (device->shares)
            hec_shares_pass(device->shares, now_ns);
        hec_late_pass(device->late, now_ns);
    }
    find_pods(&m);
    put_dcgm(&m);
    put_devices(&m);
    put_waste(&m);
    put_verdicts(&m);
    put_xids(&m);
    put_host(&m);
    if (options->power)
        put_power(&m);
    pthread_mutex_unlock(&node->lock);
    if (options->causes)
        hec_causes_read(options->causes, put_jobs, &m);
    put_agent(&m);
    hec_exposition_end(&m.out);
    return hec_buf_error(out);
}
