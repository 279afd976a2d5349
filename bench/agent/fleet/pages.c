/* Pages as the agent makes them, by its own tables and writer, of nodes that do not exist: what a Prometheus that watches many
 * nodes has to hold. Every device is used in one of eight ways, by its number, so that each rule and panel has something to show.
 *
 *     fleet_pages GPUS page NODE SECONDS    one page (OpenMetrics where SECONDS begins with "+")
 *     fleet_pages GPUS serve                an HTTP server on loopback: prints its port, /NODE/metrics is that node's page now
 *
 * "+" after GPUS: with the older names of dcgm-exporter. The figures are drawn up, not measured: nothing but the number and size of series, and what queries answer, follows from it. */
#include "agent/dcgm.h"
#include "agent/metrics.h"
#include "agent/xid.h"
#include "base/clock.h"

#include <arpa/inet.h>
#include <math.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LABELS_MAX 16
#define SHARE_MAX 4
#define FLOOR_W 120.0
#define BEFORE_S 3600.0 /* for which every device did the same before the start */

struct who {
    const char *namespace, *pod, *container, *job, *user, *command;
};

/* What a device does all the time. */
struct way {
    double watts, sm; /* sm: share of the SMs */
    enum hec_agent_verdict verdict;
    struct who tenants[2];
    const char *states[SHARE_MAX]; /* of its time; the first keeps it busy */
    double shares[SHARE_MAX];
    const char *cause; /* of a job that reports to the agent: its first finding, */
    double recoverable;
    const char *reason; /* of lower clocks */
};

static const struct way ways[] = {
    {680,
     0.95,
     HEC_AGENT_VERDICT_HEALTHY,
     {{"vision", "resnet-%d", "train", NULL, NULL, NULL}},
     {"compute", "comm", "copy", "sync"},
     {0.86, 0.08, 0.02, 0.04},
     "none",
     0,
     NULL},
    {240,
     0.28,
     HEC_AGENT_VERDICT_STARVED,
     {{"speech", "asr-%d", "train", NULL, NULL, NULL}},
     {"compute", "data", "host", "sync"},
     {0.25, 0.6, 0.1, 0.05},
     "data",
     0.38,
     NULL},
    {190,
     0.31,
     HEC_AGENT_VERDICT_OVERHEAD_BOUND,
     {{NULL, NULL, NULL, "4%d", "ada", "python3"}},
     {"compute", "launch", "sync", "host"},
     {0.3, 0.55, 0.1, 0.05},
     "launch",
     0.29,
     NULL},
    {210,
     0.22,
     HEC_AGENT_VERDICT_TRANSFER_BOUND,
     {{NULL, NULL, NULL, "5%d", "grace", "python3"}},
     {"compute", "copy", "sync", "host"},
     {0.3, 0.5, 0.1, 0.1},
     "copy",
     0.22,
     NULL},
    {124,
     0.0,
     HEC_AGENT_VERDICT_IDLE_ALLOCATED,
     {{NULL, NULL, NULL, NULL, "linus", "jupyter-lab"}},
     {"idle_allocated"},
     {1},
     NULL,
     0,
     NULL},
    {450,
     0.9,
     HEC_AGENT_VERDICT_THROTTLED,
     {{"vision", "hot-%d", "train", NULL, NULL, NULL}},
     {"busy", "idle_allocated"},
     {0.93, 0.07},
     NULL,
     0,
     "thermal"},
    {82, 0.0, HEC_AGENT_VERDICT_IDLE_FREE, {{NULL}}, {"idle_free"}, {1}, NULL, 0, NULL},
    {390,
     0.6,
     HEC_AGENT_VERDICT_HEALTHY,
     {{"chat", "llm-%d", "server", NULL, NULL, NULL}, {"chat", "rank-%d", "server", NULL, NULL, NULL}},
     {"busy", "idle_allocated"},
     {0.8, 0.2},
     NULL,
     0,
     "power"},
};

struct fleet {
    struct hec_dcgm_list dcgm;
    int gpus;
    int64_t start_ns;
};

struct page {
    struct hec_exposition to;
    const struct fleet *fleet;
    int node;
    double seconds;
};

struct device {
    const struct way *way;
    double seconds;
    bool lost; /* its counter gives no new values */
    char gpu[12], uuid[48], bus[24], name[24], host[32], pod[2][64];
};

static const struct way *device_of(const struct page *page, int gpu, struct device *d) {
    int serial = page->node * page->fleet->gpus + gpu;
    memset(d, 0, sizeof *d);
    d->way = &ways[serial % (int)(sizeof ways / sizeof ways[0])];
    d->seconds = page->seconds;
    d->lost = page->node % 40 == 0 && gpu == 0;
    snprintf(d->gpu, sizeof d->gpu, "%d", gpu);
    snprintf(d->uuid, sizeof d->uuid, "GPU-%08x-0000-4000-8000-%012x", page->node, serial);
    snprintf(d->bus, sizeof d->bus, "00000000:%02X:00.0", 16 + gpu);
    snprintf(d->name, sizeof d->name, "nvidia%d", gpu);
    snprintf(d->host, sizeof d->host, "node-%04d", page->node);
    for (int i = 0; i < 2; i++) { /* one job on eight nodes */
        const struct who *who = &d->way->tenants[i];
        const char *name = who->pod ? who->pod : who->job;
        const char *mark = name ? strchr(name, '%') : NULL;
        if (mark)
            snprintf(d->pod[i], sizeof d->pod[i], "%.*s%d%s", (int)(mark - name), name,
                     who->pod ? page->node : page->node / 8, mark + 2);
    }
    return d->way;
}

static size_t add(struct hec_label *labels, size_t count, const char *name, const char *value) {
    labels[count] = (struct hec_label){name, value};
    return count + 1;
}

static size_t label_device(struct hec_label *labels, const struct device *d) {
    return add(labels, add(labels, 0, "gpu", d->gpu), "UUID", d->uuid);
}

static size_t label_tenant(struct hec_label *labels, size_t n, const struct device *d, int i) {
    const struct who *who = &d->way->tenants[i];
    n = add(labels, n, "namespace", who->namespace);
    n = add(labels, n, "pod", who->pod ? d->pod[i] : NULL);
    n = add(labels, n, "container", who->container);
    n = add(labels, n, "hpc_job", who->job ? d->pod[i] : NULL);
    n = add(labels, n, "user", who->user);
    return add(labels, n, "command", who->command);
}

static bool is_tenant(const struct device *d, int i) {
    return i < 2 && (d->way->tenants[i].pod || d->way->tenants[i].user);
}

static int tenants_of(const struct device *d) {
    return is_tenant(d, 1) ? 2 : is_tenant(d, 0) ? 1 : 0;
}

static double joules(double watts, double seconds) {
    return floor(watts * seconds * 1000) / 1000;
}

static void begin(struct page *page, enum hec_agent_metric metric) {
    const struct hec_agent_metric_info *m = hec_agent_metric_info(metric);
    hec_exposition_family(&page->to, m->name, m->kind, m->unit, m->help);
}

typedef double (*figure)(const struct device *);
static double one(const struct device *d) {
    (void)d;
    return 1;
}
static double up(const struct device *d) {
    return !d->lost;
}
static double energy(const struct device *d) {
    return joules(d->way->watts, d->seconds);
}
static double device_seconds(const struct device *d) {
    return d->seconds;
}
static double age(const struct device *d) {
    return d->lost ? 900 : 0.3;
}
static double resets(const struct device *d) {
    (void)d;
    return 0;
}
static double power(const struct device *d) {
    return d->way->watts;
}
static double limit(const struct device *d) {
    (void)d;
    return 700;
}
static double idle_power(const struct device *d) {
    return tenants_of(d) ? FLOOR_W : 82;
}
static double lost(const struct device *d) {
    return d->way->verdict == HEC_AGENT_VERDICT_THROTTLED ? joules(60, d->seconds) : 0;
}

static void each_device(struct page *page, enum hec_agent_metric metric, figure value) {
    begin(page, metric);
    for (int gpu = 0; gpu < page->fleet->gpus; gpu++) {
        struct hec_label labels[LABELS_MAX];
        struct device d;
        device_of(page, gpu, &d);
        size_t n = label_device(labels, &d);
        if (metric == HEC_AGENT_METRIC_DEVICE_INFO) {
            n = add(labels, n, "pci_bus_id", d.bus);
            n = add(labels, n, "device", d.name);
            n = add(labels, n, "model", "NVIDIA H200");
            n = add(labels, n, "driver", "580.159.04");
        }
        if (metric == HEC_AGENT_METRIC_DEVICE_VERDICT)
            n = add(labels, n, "verdict", hec_agent_verdict_name(d.way->verdict));
        hec_exposition_sample(&page->to, labels, n, value(&d));
    }
}

static double share_of(const struct way *way, const char *state) {
    for (int i = 0; i < SHARE_MAX && way->states[i]; i++)
        if (strcmp(way->states[i], state) == 0)
            return way->shares[i];
    return 0;
}

static bool is_own(const char *state) {
    for (int i = 0; i < HEC_AGENT_STATES; i++)
        if (strcmp(hec_agent_state_name((enum hec_agent_state)i), state) == 0)
            return true;
    return false;
}

/* Of devices: the agent's own states, those that do not occur as well, and the ledger's. Of jobs: the latter. The last that
 * occurs gets what rounding left, so that they add up to the device's figure. */
static void each_state(struct page *page, enum hec_agent_metric metric, bool of_jobs, bool in_joules) {
    begin(page, metric);
    for (int gpu = 0; gpu < page->fleet->gpus; gpu++) {
        struct device d;
        const char *states[HEC_AGENT_STATES + SHARE_MAX];
        const struct way *way = device_of(page, gpu, &d);
        double rate = in_joules ? way->watts : 1, left = in_joules ? joules(rate, d.seconds) : d.seconds;
        int count = 0;
        for (int i = 0; i < HEC_AGENT_STATES && !of_jobs; i++)
            states[count++] = hec_agent_state_name((enum hec_agent_state)i);
        for (int i = 0; i < SHARE_MAX && way->states[i] && (!of_jobs || way->cause); i++)
            if (!is_own(way->states[i]))
                states[count++] = way->states[i];
        int last = 0;
        for (int i = 0; i < count; i++)
            last = share_of(way, states[i]) > 0 ? i : last;
        for (int i = 0; i < count; i++) {
            struct hec_label labels[LABELS_MAX];
            double part = i == last ? left : joules(share_of(way, states[i]) * rate, d.seconds);
            size_t n = of_jobs ? label_tenant(labels, 0, &d, 0) : label_device(labels, &d);
            left = i == last ? 0 : left - part;
            n = add(labels, n, "state", states[i]);
            hec_exposition_sample(&page->to, labels, n, of_jobs ? 0.1 * part : part);
        }
    }
}

static void each_tenant(struct page *page) {
    begin(page, HEC_AGENT_METRIC_ENERGY);
    for (int gpu = 0; gpu < page->fleet->gpus; gpu++) {
        struct device d;
        const struct way *way = device_of(page, gpu, &d);
        int count = tenants_of(&d);
        double all = joules(way->watts, d.seconds), left = all;
        for (int i = 0; i < (count ? count : 1); i++)
            for (enum hec_agent_part part = HEC_AGENT_PART_ACTIVE; part <= HEC_AGENT_PART_IDLE; part++) {
                struct hec_label labels[LABELS_MAX];
                double watts = part == HEC_AGENT_PART_IDLE ? fmin(FLOOR_W, way->watts) : fmax(0, way->watts - FLOOR_W);
                bool last = part == HEC_AGENT_PART_IDLE && i + 1 >= count;
                double value = last ? left : joules(watts / (count ? count : 1), d.seconds);
                size_t n = add(labels, label_device(labels, &d), "part", hec_agent_part_name(part));
                if (i < count)
                    n = label_tenant(labels, n, &d, i);
                left -= value;
                if (count || part == HEC_AGENT_PART_IDLE)
                    hec_exposition_sample(&page->to, labels, n, value);
            }
    }
}

/* Two who share a device are less sure than one who has it alone. */
static void each_error(struct page *page) {
    begin(page, HEC_AGENT_METRIC_ENERGY_ERROR);
    for (int gpu = 0; gpu < page->fleet->gpus; gpu++) {
        struct device d;
        const struct way *way = device_of(page, gpu, &d);
        int count = tenants_of(&d);
        for (int i = 0; i < count && way->watts > FLOOR_W; i++) {
            struct hec_label labels[LABELS_MAX];
            size_t n = add(labels, label_device(labels, &d), "part", hec_agent_part_name(HEC_AGENT_PART_ACTIVE));
            double active = joules((way->watts - FLOOR_W) / count, d.seconds);
            hec_exposition_sample(&page->to, labels, label_tenant(labels, n, &d, i), active * (count > 1 ? 0.1 : 0.01));
        }
    }
}

static void each_job(struct page *page, enum hec_agent_metric metric, const char *label) {
    begin(page, metric);
    for (int gpu = 0; gpu < page->fleet->gpus; gpu++) {
        struct hec_label labels[LABELS_MAX];
        struct device d;
        const struct way *way = device_of(page, gpu, &d);
        if (!way->cause)
            continue;
        size_t n = label_tenant(labels, 0, &d, 0);
        if (label)
            n = add(labels, n, label, strcmp(label, "cause") == 0 ? way->cause : "sample");
        hec_exposition_sample(&page->to, labels, n,
                              metric == HEC_AGENT_METRIC_JOB_RECOVERABLE ? way->recoverable
                              : metric == HEC_AGENT_METRIC_JOB_UNITS     ? floor(100 * d.seconds)
                                                                         : d.seconds);
    }
}

static void throttled(struct page *page) {
    begin(page, HEC_AGENT_METRIC_DEVICE_THROTTLED);
    for (int gpu = 0; gpu < page->fleet->gpus; gpu++) {
        struct hec_label labels[LABELS_MAX];
        struct device d;
        device_of(page, gpu, &d);
        for (int reason = 0; reason < HEC_AGENT_THROTTLES; reason++) {
            const char *name = hec_agent_throttle_name((enum hec_agent_throttle)reason);
            size_t n = add(labels, label_device(labels, &d), "reason", name);
            bool now = d.way->reason && strcmp(d.way->reason, name) == 0;
            hec_exposition_sample(&page->to, labels, n, now ? joules(0.4, d.seconds) : 0);
        }
    }
}

/* One each 5 s: of the program on the devices that starve, of the memory of the hot ones. */
static int xid_of(const struct device *d) {
    return d->way->verdict == HEC_AGENT_VERDICT_STARVED ? 31 : d->way->verdict == HEC_AGENT_VERDICT_THROTTLED ? 94 : 0;
}

static void xids(struct page *page) {
    begin(page, HEC_AGENT_METRIC_DEVICE_XIDS);
    for (int gpu = 0; gpu < page->fleet->gpus; gpu++) {
        struct hec_label labels[LABELS_MAX];
        struct device d;
        char number[16];
        device_of(page, gpu, &d);
        size_t n = label_device(labels, &d);
        snprintf(number, sizeof number, "%d", xid_of(&d));
        if (xid_of(&d))
            hec_exposition_sample(&page->to, labels, add(labels, n, "xid", number), floor(d.seconds / 5));
        hec_exposition_sample(&page->to, labels, add(labels, n, "xid", "other"), 0);
    }
}

/* In the unit of model/metric.def. */
static double reading(const struct device *d, enum hec_metric metric) {
    double sm = d->way->sm;
    switch (metric) {
    case HEC_GPU_ENERGY:
        return floor(1000 * d->way->watts * d->seconds);
    case HEC_GPU_POWER:
        return 1000 * d->way->watts;
    case HEC_GPU_SM_CLOCK:
        return sm > 0 ? 1755 : 345;
    case HEC_GPU_MEM_CLOCK:
        return 3201;
    case HEC_GPU_TEMPERATURE:
    case HEC_GPU_MEM_TEMPERATURE:
        return floor(28 + d->way->watts / 20);
    case HEC_GPU_MEM_USED:
        return tenants_of(d) ? 96 << 20 : 600 << 10;
    case HEC_GPU_XID:
        return xid_of(d);
    case HEC_GPM_PCIE_RX:
    case HEC_GPM_PCIE_TX:
    case HEC_GPM_NVLINK_RX:
    case HEC_GPM_NVLINK_TX:
        return floor(1e6 * sm);
    default:
        return floor(1000 * sm); /* of 1000 */
    }
}

static void dcgm(struct page *page) {
    const struct hec_dcgm_list *list = &page->fleet->dcgm;
    for (size_t i = 0; i < list->count; i++) {
        const struct hec_dcgm_field *field = list->chosen[i].field;
        if (field->how == HEC_DCGM_LABEL || field->metric == HEC_DCGM_NONE)
            continue;
        hec_exposition_family(&page->to, field->name, list->chosen[i].kind, NULL, list->chosen[i].help);
        for (int gpu = 0; gpu < page->fleet->gpus; gpu++) {
            struct hec_label labels[LABELS_MAX];
            struct device d;
            device_of(page, gpu, &d);
            double value = reading(&d, field->metric);
            if (field->plus != HEC_DCGM_NONE)
                value += reading(&d, field->plus);
            size_t n = label_device(labels, &d);
            n = add(labels, n, "pci_bus_id", d.bus);
            n = add(labels, n, "device", d.name);
            n = add(labels, n, "modelName", "NVIDIA H200");
            n = add(labels, n, "Hostname", d.host);
            n = add(labels, n, "DCGM_FI_DRIVER_VERSION", "580.159.04");
            char number[16];
            if (field->metric == HEC_GPU_XID) {
                snprintf(number, sizeof number, "%d", xid_of(&d));
                n = add(labels, n, "err_code", number);
                n = add(labels, n, "err_msg", hec_xid_text(xid_of(&d)));
            }
            if (tenants_of(&d) == 1)
                n = label_tenant(labels, n, &d, 0) - 2; /* user and command are not dcgm-exporter's */
            hec_exposition_sample(&page->to, labels, n,
                                  field->factor * (field->how == HEC_DCGM_TOTAL ? floor(value * d.seconds) : value));
        }
    }
}

static void single(struct page *page, enum hec_agent_metric metric, const char *label, const char *says, double value) {
    begin(page, metric);
    hec_exposition_sample(&page->to, &(struct hec_label){label, says}, label != NULL, value);
}

static void make(const struct fleet *fleet, int node, double seconds, enum hec_exposition_format format,
                 struct hec_buf *out) {
    struct page page = {.fleet = fleet, .node = node, .seconds = seconds};
    hec_exposition_begin(&page.to, out, format);
    each_device(&page, HEC_AGENT_METRIC_DEVICE_INFO, one);
    each_device(&page, HEC_AGENT_METRIC_DEVICE_UP, up);
    each_device(&page, HEC_AGENT_METRIC_DEVICE_ENERGY, energy);
    each_device(&page, HEC_AGENT_METRIC_DEVICE_SECONDS, device_seconds);
    each_device(&page, HEC_AGENT_METRIC_DEVICE_ENERGY_AGE, age);
    each_device(&page, HEC_AGENT_METRIC_DEVICE_ENERGY_RESETS, resets);
    each_device(&page, HEC_AGENT_METRIC_DEVICE_POWER, power);
    each_device(&page, HEC_AGENT_METRIC_DEVICE_POWER_LIMIT, limit);
    each_device(&page, HEC_AGENT_METRIC_DEVICE_IDLE_POWER, idle_power);
    each_state(&page, HEC_AGENT_METRIC_DEVICE_STATE_JOULES, false, true);
    each_state(&page, HEC_AGENT_METRIC_DEVICE_STATE_SECONDS, false, false);
    each_device(&page, HEC_AGENT_METRIC_DEVICE_VERDICT, one);
    throttled(&page);
    xids(&page);
    each_device(&page, HEC_AGENT_METRIC_DEVICE_THROTTLE_LOST, lost);
    each_tenant(&page);
    each_error(&page);
    each_state(&page, HEC_AGENT_METRIC_JOB_STATE_JOULES, true, true);
    each_state(&page, HEC_AGENT_METRIC_JOB_STATE_SECONDS, true, false);
    each_job(&page, HEC_AGENT_METRIC_JOB_SECONDS, NULL);
    each_job(&page, HEC_AGENT_METRIC_JOB_RECOVERABLE, "cause");
    each_job(&page, HEC_AGENT_METRIC_JOB_UNITS, "unit");
    single(&page, HEC_AGENT_METRIC_HOST_ENERGY, "domain", "package-0", joules(180, seconds));
    single(&page, HEC_AGENT_METRIC_BUILD_INFO, "version", HEC_VERSION, 1);
    single(&page, HEC_AGENT_METRIC_AGENT_CPU, NULL, NULL, joules(0.002, seconds));
    single(&page, HEC_AGENT_METRIC_AGENT_RESIDENT, NULL, NULL, 9 << 20);
    single(&page, HEC_AGENT_METRIC_AGENT_INTERVAL, NULL, NULL, 1);
    single(&page, HEC_AGENT_METRIC_AGENT_STATE_SAVED, NULL, NULL, node % 40 != 1);
    single(&page, HEC_AGENT_METRIC_AGENT_DROPPED, "what", "tenant", node % 40 == 2 ? floor(seconds) : 0);
    dcgm(&page);
    hec_exposition_end(&page.to);
}

static enum MHD_Result answer(void *context, struct MHD_Connection *connection, const char *url, const char *method,
                              const char *version, const char *upload, size_t *upload_size, void **request) {
    const struct fleet *fleet = context;
    (void)method, (void)version, (void)upload, (void)upload_size, (void)request;
    const char *accept = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Accept");
    bool open = accept && strstr(accept, "openmetrics");
    struct hec_buf out;
    hec_buf_init(&out, 64u << 20);
    make(fleet, atoi(url + 1), BEFORE_S + 1e-9 * (double)(hec_clock_mono_ns() - fleet->start_ns),
         open ? HEC_EXPOSITION_OPENMETRICS : HEC_EXPOSITION_PROMETHEUS, &out);
    struct MHD_Response *response = MHD_create_response_from_buffer(out.length, out.data, MHD_RESPMEM_MUST_FREE);
    MHD_add_response_header(response, "Content-Type",
                            open ? HEC_EXPOSITION_TYPE_OPENMETRICS : HEC_EXPOSITION_TYPE_PROMETHEUS);
    enum MHD_Result result = MHD_queue_response(connection, 200, response);
    MHD_destroy_response(response);
    return result;
}

/* Until its standard input ends. */
static int serve(struct fleet *fleet) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char byte;
    fleet->start_ns = hec_clock_mono_ns();
    struct MHD_Daemon *daemon =
        MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD, 0, NULL, NULL, answer, fleet, MHD_OPTION_SOCK_ADDR, &address,
                         MHD_OPTION_CONNECTION_LIMIT, 8192u, MHD_OPTION_END);
    if (!daemon)
        return 1;
    printf("%u\n", (unsigned)MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT)->port);
    fflush(stdout);
    while (read(0, &byte, 1) > 0)
        ;
    MHD_stop_daemon(daemon);
    return 0;
}

int main(int argc, char **argv) {
    static struct fleet fleet;
    struct hec_buf out;
    fleet.gpus = argc > 1 ? atoi(argv[1]) : 0;
    hec_dcgm_list_default(&fleet.dcgm, argc > 1 && strchr(argv[1], '+'));
    if (argc == 3 && strcmp(argv[2], "serve") == 0)
        return serve(&fleet);
    if (argc != 5 || strcmp(argv[2], "page") != 0)
        return 2;
    hec_buf_init(&out, 64u << 20);
    make(&fleet, atoi(argv[3]), atof(argv[4]),
         argv[4][0] == '+' ? HEC_EXPOSITION_OPENMETRICS : HEC_EXPOSITION_PROMETHEUS, &out);
    fputs(hec_buf_text(&out), stdout);
    hec_buf_free(&out);
    return 0;
}
