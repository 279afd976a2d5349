#include "agent/live.h"

#include "base/clock.h"
#include "report/json_values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const struct hec_history_point nothing = {NAN, {NAN, NAN, NAN, NAN}};
_Static_assert(HEC_AGENT_STATES == 4, "as many as nothing has");

static struct hec_history_device *device_at(struct hec_history *history, int index) {
    if (!history->devices[index]) {
        struct hec_history_device *made = history->devices[index] = calloc(1, sizeof *made);
        for (size_t i = 0; made && i < HEC_HISTORY_POINTS; i++)
            made->point[i] = nothing;
    }
    return history->devices[index];
}

/* Joules since the last value of the counter belong to all points since. */
static void settle(struct hec_history *history, struct hec_history_device *to, const struct hec_node_device *device,
                   int64_t now_ns) {
    const int64_t *mj = &device->total[HEC_NODE_BUSY_MJ];
    unsigned points = to->pending < HEC_HISTORY_POINTS ? to->pending : HEC_HISTORY_POINTS;
    double seconds = (double)(now_ns - to->settled_ns) / HEC_NS_PER_S;
    bool known = to->settled_ns && seconds > 0;
    if (to->settled_ns && memcmp(mj, to->settled_mj, sizeof to->settled_mj) == 0)
        return;
    for (int state = 0; state < HEC_AGENT_STATES; state++)
        for (unsigned i = 0; i < points && known; i++) {
            int64_t added_mj = mj[state] - to->settled_mj[state];
            to->point[(history->count - 1 - i) % HEC_HISTORY_POINTS].state_w[state] =
                added_mj < 0 ? NAN : (float)((double)added_mj / 1e3 / seconds);
        }
    memcpy(to->settled_mj, mj, sizeof to->settled_mj);
    to->settled_ns = now_ns;
    to->pending = 0;
}

void hec_history_add(struct hec_history *history, struct hec_node *node, int64_t now_ns) {
    pthread_mutex_lock(&node->lock);
    history->begun_ns = history->count ? history->begun_ns : now_ns;
    history->interval_ns = node->interval_ns;
    history->count++;
    for (int i = 0; i < HEC_DEVICE_MAX; i++) {
        const struct hec_node_device *device = node->devices[i];
        struct hec_history_device *to = device && device->seen ? device_at(history, i) : NULL;
        if (!to)
            continue;
        struct hec_history_point *point = &to->point[(history->count - 1) % HEC_HISTORY_POINTS];
        const struct hec_node_value *power = &device->newest[HEC_GPU_POWER];
        *point = nothing;
        if (device->up && power->t_ns != INT64_MIN)
            point->power_w = (float)power->value / 1000;
        to->pending++;
        if (device->counter_ns != INT64_MIN)
            settle(history, to, device, now_ns);
    }
    pthread_mutex_unlock(&node->lock);
}

void hec_history_free(struct hec_history *history) {
    for (int i = 0; i < HEC_DEVICE_MAX; i++)
        free(history->devices[i]);
}

size_t hec_history_count(const struct hec_history *history) {
    return history->count < HEC_HISTORY_POINTS ? (size_t)history->count : HEC_HISTORY_POINTS;
}

const struct hec_history_point *hec_history_at(const struct hec_history *history, int device, size_t point) {
    const struct hec_history_device *d = history->devices[device];
    return d ? &d->point[(history->count - hec_history_count(history) + point) % HEC_HISTORY_POINTS] : NULL;
}

#define WATTS_NS (10 * HEC_NS_PER_S) /* watts of a tenant are means of so long at least, twice as long at most; */
#define WATTS_LEAST_NS HEC_NS_PER_S  /* of less where nobody looked before */
#define CAUSES_POINTS 100            /* at most */

static json_t *rounded(double value) {
    return isfinite(value) ? json_real(round(value * 100) / 100) : json_null();
}

/* ---- devices ---- */

static json_t *history_of(const struct hec_history *history, int index) {
    json_t *list = json_array();
    for (size_t i = 0; i < hec_history_count(history); i++) {
        const struct hec_history_point *point = hec_history_at(history, index, i);
        json_array_append_new(list, rounded(point ? point->power_w : NAN));
    }
    return list;
}

static json_t *device_of(const struct hec_live *live, const struct hec_node *node, const struct hec_node_device *d,
                         int64_t now_ns) {
    static const struct {
        const char *key;
        enum hec_metric metric;
        double scale;
    } values[] = {
        {"power_w", HEC_GPU_POWER, 1e-3},
        {"limit_w", HEC_GPU_POWER_LIMIT, 1e-3},
        {"gpu", HEC_GPU_UTIL, 1e-3},
        {"sm", HEC_GPM_SM_ACTIVE, 1e-3},
        {"tensor", HEC_GPM_TENSOR_ACTIVE, 1e-3},
        {"dram", HEC_GPM_DRAM_ACTIVE, 1e-3},
        {"pcie_rx_bytes_per_s", HEC_GPM_PCIE_RX, 1024},
        {"pcie_tx_bytes_per_s", HEC_GPM_PCIE_TX, 1024},
        {"memory_used_bytes", HEC_GPU_MEM_USED, 1024},
        {"temperature_c", HEC_GPU_TEMPERATURE, 1},
    };
    json_t *device = json_object();
    double sure = NAN;
    int verdict = d->up ? hec_verdict_of(&d->verdict, &d->info, now_ns, &sure) : HEC_VERDICT_UNKNOWN;
    json_object_set_new(device, "index", json_integer(d->info.index % HEC_VENDOR_DEVICES_MAX));
    json_object_set_new(device, "name", of_TEXT(d->info.name));
    json_object_set_new(device, "uuid", of_TEXT(d->info.uuid));
    json_object_set_new(device, "simulated", json_boolean(d->info.simulated));
    json_object_set_new(device, "up", json_boolean(d->up));
    json_object_set_new(device, "verdict",
                        verdict == HEC_VERDICT_UNKNOWN
                            ? json_null()
                            : json_string(hec_agent_verdict_name((enum hec_agent_verdict)verdict)));
    json_object_set_new(device, "confidence", of_NUMBER(sure));
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        json_object_set_new(device, values[i].key,
                            of_NUMBER(hec_node_value_of(node, d, values[i].metric, now_ns) * values[i].scale));
    json_object_set_new(device, "memory_total_bytes",
                        d->info.memory_kib > 0 ? json_integer(1024 * d->info.memory_kib) : json_null());
    json_object_set_new(device, "joules",
                        d->counter_ns == INT64_MIN ? json_null()
                                                   : json_real((double)d->total[HEC_NODE_ENERGY_MJ] / 1e3));
    json_object_set_new(device, "power_history_w", history_of(&live->history, d->info.index));
    return device;
}

/* ---- what it went into ---- */

/* Of all devices that answer, over the points from `from` on; NAN: not known of one of them in any of these. */
static double watts_of(const struct hec_live *live, const struct hec_node *node, size_t from, size_t points,
                       int state) {
    double sum = 0;
    bool any = false;
    for (int i = 0; i < HEC_DEVICE_MAX; i++) {
        const struct hec_node_device *d = node->devices[i];
        double mean = 0;
        for (size_t k = 0; k < points && d && d->seen && d->up; k++) {
            const struct hec_history_point *point = hec_history_at(&live->history, i, from + k);
            mean += (point ? (double)point->state_w[state] : NAN) / (double)points;
            any = true;
        }
        sum += mean;
    }
    return any ? sum : NAN;
}

/* The newest points are left out until the counter has said what they drew. */
static json_t *causes_of(const struct hec_live *live, const struct hec_node *node) {
    size_t count = hec_history_count(&live->history), points = (count + CAUSES_POINTS - 1) / CAUSES_POINTS;
    double interval_s = (double)live->history.interval_ns / HEC_NS_PER_S;
    json_t *names = json_array(), *watts = json_array();
    size_t known = 0;
    if (!count)
        points = 1;
    for (int state = 0; state < HEC_AGENT_STATES; state++)
        json_array_append_new(names, json_string(hec_agent_state_name((enum hec_agent_state)state)));
    for (size_t from = 0; from + points <= count; from += points) {
        json_t *cell = json_array();
        for (int state = 0; state < HEC_AGENT_STATES; state++) {
            double value = watts_of(live, node, from, points, state);
            known = isfinite(value) ? json_array_size(watts) + 1 : known;
            json_array_append_new(cell, rounded(value));
        }
        json_array_append_new(watts, cell);
    }
    while (json_array_size(watts) > known)
        json_array_remove(watts, json_array_size(watts) - 1);
    return json_pack("{s:f, s:f, s:o, s:o}", "from_s", -(double)count * interval_s, "step_s",
                     (double)points * interval_s, "names", names, "watts", watts);
}

/* ---- tenants ---- */

static double watts_since(const struct hec_live_before *before, const struct hec_waste_row *t, int64_t now_ns) {
    for (size_t i = 0; i < before->count && before->t_ns; i++)
        if (before->row[i].tenant == t->id)
            return (double)(hec_waste_row_uj(t) - before->row[i].uj) / 1e6 /
                   ((double)(now_ns - before->t_ns) / HEC_NS_PER_S);
    return NAN;
}

static void remember(struct hec_live *live, const struct hec_waste_row *list, size_t count, int64_t now_ns) {
    if (live->before[1].t_ns && now_ns - live->before[1].t_ns < WATTS_NS)
        return;
    live->before[0] = live->before[1];
    live->before[1].t_ns = now_ns;
    live->before[1].count = count;
    for (size_t i = 0; i < count; i++) {
        live->before[1].row[i].tenant = list[i].id;
        live->before[1].row[i].uj = hec_waste_row_uj(&list[i]);
    }
    if (now_ns - live->before[0].t_ns > 4 * WATTS_NS) /* nobody looked meanwhile */
        live->before[0] = live->before[1];
}

#define TENANT_NAME 520

/* "namespace/pod/container", "job 17: python", "user: python"; *kind: "pod", "job" or "user". */
static char *tenant_name(char out[TENANT_NAME], const struct hec_tenant *t, const char **kind) {
    *kind = t->pod[0] ? "pod" : t->job[0] ? "job" : "user";
    if (t->pod[0])
        snprintf(out, TENANT_NAME, "%s/%s%s%s", t->pod_namespace, t->pod, t->container[0] ? "/" : "", t->container);
    else if (t->job[0])
        snprintf(out, TENANT_NAME, "job %s%s%s%s%s", t->job, t->step[0] ? "." : "", t->step, t->command[0] ? ": " : "",
                 t->command);
    else
        snprintf(out, TENANT_NAME, "%s%s%s", t->user, t->user[0] && t->command[0] ? ": " : "", t->command);
    return out;
}

/* Joules while devices worked for it, and while it only held them; by what was said of it then. */
static void add_use(json_t *row, const struct hec_use_made *use, int64_t uj, bool known) {
    double wasted = (double)hec_use_made_wasted_uj(use) / 1e6;
    json_t *causes = json_object();
    for (int cause = 0; cause < HEC_WASTE_COUNT; cause++)
        if (use->wasted_uj[cause])
            json_object_set_new(causes, hec_waste_name(cause), json_real((double)use->wasted_uj[cause] / 1e6));
    json_object_set_new(row, "joules", json_real((double)uj / 1e6));
    json_object_set_new(row, "wasted_joules", known ? json_real(wasted) : json_null());
    json_object_set_new(row, "worked_joules", known ? json_real((double)uj / 1e6 - wasted) : json_null());
    json_object_set_new(row, "wasted_by_cause", causes);
    json_object_set_new(row, "worked_share", of_NUMBER(hec_use_made_worked(use)));
}

static json_t *advice_of(const struct hec_use_made *use, int cause) {
    const char *words = hec_waste_scale_words(hec_waste_scale(use, cause));
    return words[0] ? json_string(words) : json_null();
}

static json_t *tenant_of(const struct hec_live *live, const struct hec_node *node, const struct hec_waste_row *t,
                         int64_t now_ns) {
    const char *kind;
    char name[TENANT_NAME];
    struct hec_node_said said = hec_waste_said(node, t, now_ns);
    bool known = said.cause != HEC_WASTE_UNKNOWN;
    tenant_name(name, t->of, &kind);
    double watts = now_ns - live->before[0].t_ns >= WATTS_LEAST_NS ? watts_since(&live->before[0], t, now_ns) : NAN;
    json_t *row = json_pack("{s:o, s:s, s:o, s:o, s:o}", "name", of_STRING(name), "kind", kind, "devices",
                            indices_of(t->devices), "error_joules", rounded(t->off_uj / 1e6), "watts", rounded(watts));
    json_object_set_new(row, "team", of_TEXT(hec_waste_team_of(t->of)));
    json_object_set_new(row, "user", of_TEXT(t->of->user));
    json_object_set_new(row, "job", of_TEXT(t->of->job));
    json_object_set_new(row, "command", of_TEXT(t->of->command));
    add_use(row, &t->use, hec_waste_row_uj(t), hec_waste_known(t));
    json_object_set_new(row, "cause", known ? json_string(hec_waste_name(said.cause)) : json_null());
    json_object_set_new(row, "says", known ? json_string(hec_waste_title(said.cause)) : json_null());
    json_object_set_new(row, "by", known ? json_string(said.by_job ? "job" : "telemetry") : json_null());
    json_object_set_new(row, "confidence", of_NUMBER(said.sure));
    json_object_set_new(row, "advice", advice_of(&t->use, said.cause));
    return row;
}

static void add_tenants(json_t *root, struct hec_live *live, const struct hec_node *node, int64_t now_ns) {
    struct hec_waste_row *list = calloc(HEC_WASTE_TENANTS, sizeof *list);
    struct hec_waste_team *teams = calloc(HEC_WASTE_TENANTS, sizeof *teams);
    json_t *rows = json_array(), *sums = json_array();
    int count = list && teams ? hec_waste_rows(node, list) : 0;
    hec_waste_sort(list, count);
    remember(live, list, (size_t)count, now_ns);
    for (int i = 0; i < count; i++)
        json_array_append_new(rows, tenant_of(live, node, &list[i], now_ns));
    int team_count = count ? hec_waste_teams(list, count, teams) : 0;
    for (int i = 0; i < team_count; i++) {
        json_t *team =
            json_pack("{s:o, s:o}", "team", of_STRING(teams[i].name), "devices", indices_of(teams[i].devices));
        add_use(team, &teams[i].use, teams[i].uj, true);
        json_object_set_new(team, "advice", advice_of(&teams[i].use, HEC_WASTE_UNKNOWN));
        json_array_append_new(sums, team);
    }
    free(teams);
    free(list);
    json_object_set_new(root, "tenants", rows);
    json_object_set_new(root, "teams", sums);
}

/* ---- jobs ---- */

static void add_job(json_t *rows, const struct hec_causes_job *job) {
    const char *kind;
    char name[TENANT_NAME];
    double joules = 0, wasted = 0;
    json_t *states = json_object(), *row = json_object();
    for (int state = 0; state < HEC_STATE_COUNT; state++) {
        if (!(job->seconds[state] > 0) || !job->priced)
            continue;
        joules += job->joules[state];
        wasted += hec_state_idle((enum hec_state)state) ? job->joules[state] : 0;
        json_object_set_new(states, hec_state_name((enum hec_state)state), json_real(job->joules[state]));
    }
    json_object_set_new(row, "name", of_STRING(tenant_name(name, job->tenant, &kind)));
    json_object_set_new(row, "kind", json_string(kind));
    json_object_set_new(row, "command", of_TEXT(job->tenant->command));
    json_object_set_new(row, "runs", json_boolean(job->running));
    json_object_set_new(row, "devices", indices_of(job->devices));
    json_object_set_new(row, "cause",
                        job->cause >= 0 ? json_string(hec_cause_name((enum hec_cause)job->cause)) : json_null());
    json_object_set_new(row, "recoverable", of_NUMBER(job->recoverable));
    json_object_set_new(row, "seconds", json_real(job->device_s));
    json_object_set_new(row, "joules", job->priced ? json_real(joules) : json_null());
    json_object_set_new(row, "wasted_joules", job->priced ? json_real(wasted) : json_null());
    json_object_set_new(row, "wasted_share", joules > 0 ? json_real(wasted / joules) : json_null());
    json_object_set_new(row, "state_joules", states);
    json_array_append_new(rows, row);
}

static void add_jobs(void *rows, const struct hec_causes_job *jobs, size_t count) {
    for (size_t i = 0; i < count; i++)
        add_job(rows, &jobs[i]);
}

static int by_waste(const void *one, const void *other) {
    double a = json_number_value(json_object_get(*(json_t *const *)one, "wasted_joules"));
    double b = json_number_value(json_object_get(*(json_t *const *)other, "wasted_joules"));
    return (a < b) - (a > b);
}

static json_t *jobs_of(struct hec_causes *causes) {
    json_t *found = json_array(), *sorted = json_array(), *list[HEC_CAUSES_ROWS_MAX] = {NULL};
    size_t count = 0;
    hec_causes_read(causes, add_jobs, found);
    for (; count < json_array_size(found) && count < HEC_CAUSES_ROWS_MAX; count++)
        list[count] = json_array_get(found, count);
    /* NOLINTNEXTLINE(bugprone-sizeof-expression): pointers */
    qsort(list, count, sizeof *list, by_waste);
    for (size_t i = 0; i < count; i++)
        json_array_append(sorted, list[i]);
    json_decref(found);
    return sorted;
}

/* ---- the whole ---- */

static int add_bytes(const char *data, size_t size, void *out) {
    return hec_buf_add(out, data, size) < 0 ? -1 : 0;
}

int hec_live_make(struct hec_live *live, struct hec_node *node, const struct hec_page_options *options,
                  const struct hec_page_agent *agent, int64_t now_ns, struct hec_buf *out) {
    char instant[40];
    time_t wall = (time_t)(hec_clock_wall_ns() / HEC_NS_PER_S);
    struct tm utc;
    strftime(instant, sizeof instant, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&wall, &utc));
    json_t *root = json_object(), *devices = json_array();
    json_object_set_new(root, "hostname", of_TEXT(options->hostname));
    json_object_set_new(root, "hec_version", json_string(HEC_VERSION));
    json_object_set_new(root, "time", json_string(instant));
    json_object_set_new(root, "interval_s", json_real((double)node->interval_ns / HEC_NS_PER_S));
    pthread_mutex_lock(&node->lock);
    for (int i = 0; i < HEC_DEVICE_MAX; i++)
        if (node->devices[i] && node->devices[i]->seen)
            json_array_append_new(devices, device_of(live, node, node->devices[i], now_ns));
    json_object_set_new(root, "devices", devices);
    json_object_set_new(root, "trouble", !node->driver ? of_TEXT(node->trouble) : json_null());
    add_tenants(root, live, node, now_ns);
    json_object_set_new(root, "causes", causes_of(live, node));
    pthread_mutex_unlock(&node->lock);
    json_object_set_new(root, "jobs", options->causes ? jobs_of(options->causes) : json_array());
    json_object_set_new(root, "self",
                        json_pack("{s:f, s:o}", "cpu_seconds", agent->cpu_seconds, "resident_bytes",
                                  agent->resident_bytes >= 0 ? json_real(agent->resident_bytes) : json_null()));
    hec_buf_clear(out);
    int failed = json_dump_callback(root, add_bytes, out, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(9));
    json_decref(root);
    return hec_buf_error(out) ? hec_buf_error(out) : failed ? HEC_ERR_NOMEM : HEC_OK;
}
