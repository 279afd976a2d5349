#include "top/state.h"

#include "base/clock.h"
#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WATTS_NS (2 * HEC_NS_PER_S) /* they are a mean over once to twice as long */

void hec_top_begin(struct hec_top_state *state, int64_t now_ns, int64_t interval_ns) {
    char host[sizeof state->host] = "";
    memset(state, 0, sizeof *state);
    gethostname(host, sizeof host - 1);
    hec_text_clean(state->host, sizeof state->host, host, strlen(host), true);
    state->begun_ns = state->now_ns = now_ns;
    state->interval_ns = interval_ns;
}

const struct hec_top_device *hec_top_device_at(const struct hec_top_state *state, int index) {
    int i = 0;
    while (i < state->device_count - 1 && state->devices[i].index != index)
        i++;
    return &state->devices[i];
}

/* In the order of their numbers. One that another took the number of begins anew; one that is lost may have no names. */
static struct hec_top_device *place_of(struct hec_top_state *state, const struct hec_device *info) {
    int i = 0;
    while (i < state->device_count && state->devices[i].index < info->index)
        i++;
    struct hec_top_device *device = &state->devices[i];
    char uuid[sizeof device->uuid];
    hec_text_clean(uuid, sizeof uuid, info->uuid, strlen(info->uuid), true);
    bool known = i < state->device_count && device->index == info->index;
    if (known && (strcmp(device->uuid, uuid) == 0 || !uuid[0]))
        return device;
    if (!known) {
        memmove(device + 1, device, (size_t)(state->device_count - i) * sizeof *device);
        state->device_count++;
    }
    *device = (struct hec_top_device){.index = info->index};
    for (int c = 0; c < HEC_TOP_COURSE; c++)
        device->course[c] = NAN;
    memcpy(device->uuid, uuid, sizeof uuid);
    hec_text_clean(device->name, sizeof device->name, info->name, strlen(info->name), true);
    device->ordinal = info->index % HEC_VENDOR_DEVICES_MAX;
    device->simulated = info->simulated > 0;
    return device;
}

static int64_t throttle_of(double bits) {
    int64_t reasons = 0;
    for (int i = 0; i < HEC_THROTTLE_UNASKED && !isnan(bits); i++)
        reasons |= (int64_t)hec_throttle_has((int64_t)bits, (enum hec_throttle)i) << i;
    return isnan(bits) ? -1 : reasons;
}

static void take_figures(struct hec_top_device *out, const struct hec_node *node, const struct hec_node_device *device,
                         int64_t now_ns) {
    const struct {
        enum hec_metric metric;
        double factor;
        double *out;
    } figures[] = {
        {HEC_GPU_POWER, 1e-3, &out->power_w},        {HEC_GPU_POWER_LIMIT, 1e-3, &out->limit_w},
        {HEC_GPM_SM_ACTIVE, 1e-3, &out->sm},         {HEC_GPM_TENSOR_ACTIVE, 1e-3, &out->tensor},
        {HEC_GPM_DRAM_ACTIVE, 1e-3, &out->dram},     {HEC_GPU_UTIL, 1e-3, &out->util},
        {HEC_GPM_PCIE_RX, 1024, &out->pcie_in},      {HEC_GPM_PCIE_TX, 1024, &out->pcie_out},
        {HEC_GPU_MEM_USED, 1024, &out->memory_used}, {HEC_GPU_TEMPERATURE, 1, &out->temperature_c},
    };
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++)
        *figures[i].out = hec_node_value_of(node, device, figures[i].metric, now_ns) * figures[i].factor;
    if (isnan(out->limit_w) && device->up && device->info.power_limit_mw > 0)
        out->limit_w = (double)device->info.power_limit_mw * 1e-3;
    out->memory_total = device->info.memory_kib > 0 ? (double)device->info.memory_kib * 1024 : NAN;
    out->throttle = throttle_of(hec_node_value_of(node, device, HEC_GPU_THROTTLE, now_ns));
    out->verdict = device->up ? hec_verdict_of(&device->verdict, &device->info, now_ns, NULL) : HEC_VERDICT_UNKNOWN;
    memmove(out->course, out->course + 1, sizeof out->course - sizeof out->course[0]);
    out->course[HEC_TOP_COURSE - 1] = out->power_w;
}

static int64_t sum_uj(const struct hec_shares_row *row) {
    int64_t uj = 0;
    for (int part = 0; part < HEC_SHARES_PART_COUNT; part++)
        uj += row->uj[part];
    return uj;
}

static const struct hec_shares_row *row_of(const struct hec_node_device *device, int32_t pid) {
    for (size_t i = 0; device->shares && i < hec_shares_count(device->shares); i++)
        if (hec_shares_row(device->shares, i)->tenant.pid == pid)
            return hec_shares_row(device->shares, i);
    return NULL;
}

/* A pod by its name, a job by its number; of two that are known the narrower is meant. */
static void name_work(const struct hec_tenant *tenant, struct hec_top_process *out) {
    char work[sizeof tenant->pod_namespace + sizeof tenant->pod + 1];
    if (tenant->pod[0])
        snprintf(work, sizeof work, "%s%s%s", tenant->pod_namespace, tenant->pod_namespace[0] ? "/" : "", tenant->pod);
    else if (tenant->job[0])
        snprintf(work, sizeof work, "job %s", tenant->job);
    else
        snprintf(work, sizeof work, "%s", tenant->container);
    hec_text_clean(out->work, sizeof out->work, work, strlen(work), true);
}

/* Watts are the mean of the last seconds: a counter has a new value every 0.1 s or so, which is much of one interval. Before a
 * second reading they are not known. */
static void take_joules(struct hec_top_state *state, struct hec_top_process *out, const struct hec_shares_row *row) {
    struct hec_top_reading now = {row ? sum_uj(row) : 0, row ? row->held_ns : 0};
    if (!row)
        return;
    out->joules = (double)now.uj * 1e-6;
    out->joules_off = hec_share_error_bound_uj(&row->error) * 1e-6;
    out->from = out->later = now;
    for (int i = 0; i < state->before_count; i++) {
        const struct hec_top_process *before = &state->before[i];
        if (before->pid != out->pid || before->device != out->device || before->from.t_ns == 0)
            continue;
        bool turn = now.t_ns - before->later.t_ns >= WATTS_NS;
        out->from = turn ? before->later : before->from;
        out->later = turn ? now : before->later;
    }
    if (now.t_ns > out->from.t_ns)
        out->watts = (double)(now.uj - out->from.uj) * 1e3 / (double)(now.t_ns - out->from.t_ns);
}

static void take_process(struct hec_top_state *state, struct hec_node *node, const struct hec_node_device *device,
                         const struct hec_node_process *process) {
    const struct hec_shares_row *row = row_of(device, process->now.pid);
    struct hec_tenant tenant = {.user = "(unknown)"};
    if (state->process_count == HEC_TOP_PROCESSES_MAX) {
        state->left_out++;
        return;
    }
    if (row)
        tenant = row->tenant;
    else if (node->identity)
        hec_identity_of(node->identity, process->now.pid, NULL, 0, state->now_ns, &tenant);
    struct hec_top_process *out = &state->processes[state->process_count++];
    *out = (struct hec_top_process){
        .pid = process->now.pid, .device = device->info.index, .joules = NAN, .joules_off = NAN, .watts = NAN};
    const char *line = node->identity ? hec_identity_line(node->identity, out->pid) : "";
    if (!line[0])
        line = tenant.command;
    /* clean already, but for one that an agent's state would have given */
    hec_text_clean(out->user, sizeof out->user, tenant.user, strlen(tenant.user), true);
    hec_text_clean(out->pod_namespace, sizeof out->pod_namespace, tenant.pod_namespace, strlen(tenant.pod_namespace),
                   true);
    hec_text_clean(out->pod, sizeof out->pod, tenant.pod, strlen(tenant.pod), true);
    hec_text_clean(out->container, sizeof out->container, tenant.container, strlen(tenant.container), true);
    hec_text_clean(out->job, sizeof out->job, tenant.job, strlen(tenant.job), true);
    hec_text_clean(out->command, sizeof out->command, line, strlen(line), true);
    name_work(&tenant, out);
    out->sm = process->now.sm_util_samples > 0 ? process->sm_permille * 1e-3 : NAN;
    out->memory = process->now.memory_kib >= 0 ? (double)process->now.memory_kib * 1024 : NAN;
    take_joules(state, out, row);
}

/* What is of no process that is listed: rows without a pid are nobody's, the others' processes have ended. */
static void take_rest(struct hec_top_device *out, const struct hec_node_device *device, bool waste) {
    int64_t nobody = 0, ended = 0;
    for (size_t i = 0; device->shares && i < hec_shares_count(device->shares); i++) {
        const struct hec_shares_row *row = hec_shares_row(device->shares, i);
        bool listed = waste && i >= HEC_SHARES_NAMED;
        for (int p = 0; p < device->process_count && !waste; p++)
            listed |= device->processes[p].now.pid == row->tenant.pid;
        if (i == 0)
            nobody += sum_uj(row);
        else if (!listed)
            ended += sum_uj(row);
    }
    out->nobody = isnan(out->joules) ? NAN : (double)nobody * 1e-6;
    out->ended = isnan(out->joules) ? NAN : (double)ended * 1e-6;
}

static void take_use(struct hec_top_waste *out, const struct hec_use_made *use, int64_t uj, uint64_t devices) {
    out->devices = devices;
    out->joules = (double)uj * 1e-6;
    out->wasted = (double)hec_use_made_wasted_uj(use) * 1e-6;
    out->worked = hec_use_made_worked(use);
    for (int cause = 0; cause < HEC_WASTE_COUNT; cause++)
        out->by_cause[cause] = (double)use->wasted_uj[cause] * 1e-6;
}

/* Their names are clean (agent/identity.h). Of rows that gave no joules yet nothing is shown. */
static void take_waste(struct hec_top_state *state, const struct hec_node *node, int64_t now_ns) {
    static struct hec_waste_row rows[HEC_WASTE_TENANTS];
    static struct hec_waste_team teams[HEC_WASTE_TENANTS];
    int count = hec_waste_rows(node, rows);
    hec_waste_sort(rows, count);
    state->waste_count = count;
    for (int i = 0; i < count; i++) {
        struct hec_top_waste *out = &state->wastes[i];
        const struct hec_tenant *of = rows[i].of;
        *out = (struct hec_top_waste){.said = hec_waste_said(node, &rows[i], now_ns)};
        snprintf(out->team, sizeof out->team, "%s", hec_waste_team_of(of));
        memcpy(out->user, of->user, sizeof out->user);
        memcpy(out->pod, of->pod, sizeof out->pod);
        memcpy(out->container, of->container, sizeof out->container);
        memcpy(out->job, of->job, sizeof out->job);
        memcpy(out->command, of->command, sizeof out->command);
        take_use(out, &rows[i].use, hec_waste_row_uj(&rows[i]), rows[i].devices);
        out->wasted = hec_waste_known(&rows[i]) ? out->wasted : NAN;
        out->scale = hec_waste_scale(&rows[i].use, out->said.cause);
    }
    state->team_count = hec_waste_teams(rows, count, teams);
    for (int i = 0; i < state->team_count; i++) {
        state->teams[i] = (struct hec_top_waste){.said = {.cause = HEC_WASTE_UNKNOWN, .sure = NAN},
                                                 .scale = hec_waste_scale(&teams[i].use, HEC_WASTE_UNKNOWN)};
        snprintf(state->teams[i].team, sizeof state->teams[i].team, "%s", teams[i].name);
        take_use(&state->teams[i], &teams[i].use, teams[i].uj, teams[i].devices);
    }
}

void hec_top_take(struct hec_top_state *state, struct hec_node *node, int64_t now_ns) {
    memcpy(state->before, state->processes, (size_t)state->process_count * sizeof state->processes[0]);
    state->before_count = state->process_count;
    state->process_count = 0;
    state->left_out = 0;
    state->now_ns = now_ns;
    state->wall_ns = hec_clock_wall_ns();
    pthread_mutex_lock(&node->lock);
    hec_text_clean(state->trouble, sizeof state->trouble, node->trouble, strlen(node->trouble), true);
    for (int i = 0; i < HEC_DEVICE_MAX; i++) {
        const struct hec_node_device *device = node->devices[i];
        if (!device)
            continue;
        struct hec_top_device *out = place_of(state, &device->info);
        out->up = device->up;
        take_figures(out, node, device, now_ns);
        out->joules = device->counter_ns == INT64_MIN ? NAN : (double)device->total[HEC_NODE_ENERGY_MJ] * 1e-3;
        out->joules_s = isnan(out->joules) ? NAN : (double)(device->settled_ns - device->first_ns) / HEC_NS_PER_S;
        for (int p = 0; p < device->process_count && !state->waste; p++)
            take_process(state, node, device, &device->processes[p]);
        take_rest(out, device, state->waste);
    }
    if (state->waste)
        take_waste(state, node, now_ns);
    state->left_out += node->dropped_processes;
    pthread_mutex_unlock(&node->lock);
}

const char *hec_top_throttle(const struct hec_top_device *device, char text[HEC_TOP_TEXT]) {
    size_t used = 0;
    snprintf(text, HEC_TOP_TEXT, "%s", device->throttle == 0 ? "none" : "");
    for (int i = 0; i < HEC_THROTTLE_UNASKED && device->throttle > 0; i++)
        if (device->throttle >> i & 1)
            used += (size_t)snprintf(text + used, HEC_TOP_TEXT - used, "%s%s", used ? "," : "",
                                     hec_throttle_info((enum hec_throttle)i)->name);
    return text;
}

const char *hec_top_verdict(const struct hec_top_device *device) {
    return !device->up                              ? "LOST"
           : device->verdict == HEC_VERDICT_UNKNOWN ? ""
                                                    : hec_agent_verdict_name((enum hec_agent_verdict)device->verdict);
}
