/* Pages of nodes that do not exist, by the agent's own writer: what a Prometheus that watches many nodes has to hold. Every device is
 * used in one of eight ways, by its number, so that each rule and panel has something to show.
 *
 *     fleet_pages GPUS page NODE SECONDS    one page (OpenMetrics where SECONDS begins with "+")
 *     fleet_pages GPUS serve                an HTTP server on loopback: prints its port, /NODE/metrics is that node's page now
 *
 * "+" after GPUS: with the older names of dcgm-exporter; "a": all series.
 * The figures are drawn up, not measured: nothing but the number and size of series, and what queries answer, follows from it. */
#include "agent/page.h"
#include "base/clock.h"
#include "diagnose/meter/use.h"
#include "model/throttle.h"

#include <arpa/inet.h>
#include <math.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FLOOR_W 120.0
#define FREE_W 82.0
#define BEFORE_S 3600.0 /* for which every device did the same before the start */
#define LOST_S 900      /* since a device is lost */

/* What a device does all the time. */
struct way {
    double watts, busy; /* busy: share of the time in which a kernel runs */
    double engine, sm, occupancy, bus_gb_s;
    struct hec_tenant tenants[2]; /* names with the node's number, or eight nodes' where they are of a job */
    bool reports;                 /* a job that reports to the agent: */
    double states[HEC_STATE_COUNT];
    enum hec_cause cause;
    double recoverable;
    enum hec_throttle reason; /* of lower clocks; HEC_THROTTLE_UNASKED: none */
    int xid;                  /* an error each 5 s */
};

static const struct way ways[] = {
    {.watts = 680, /* healthy */
     .busy = 0.96,
     .engine = 0.97,
     .sm = 0.95,
     .occupancy = 0.5,
     .tenants = {{.pod_namespace = "vision", .pod = "resnet-%d", .container = "train"}},
     .reports = true,
     .states = {[HEC_STATE_COMPUTE] = 0.86, [HEC_STATE_COMM] = 0.08, [HEC_STATE_COPY] = 0.02, [HEC_STATE_SYNC] = 0.04},
     .cause = HEC_CAUSE_NONE,
     .reason = HEC_THROTTLE_UNASKED},
    {.watts = 240, /* starved */
     .busy = 0.25,
     .engine = 0.3,
     .sm = 0.28,
     .occupancy = 0.2,
     .tenants = {{.pod_namespace = "speech", .pod = "asr-%d", .container = "train"}},
     .reports = true,
     .states = {[HEC_STATE_COMPUTE] = 0.25, [HEC_STATE_DATA] = 0.6, [HEC_STATE_HOST] = 0.1, [HEC_STATE_SYNC] = 0.05},
     .cause = HEC_CAUSE_DATA,
     .recoverable = 0.38,
     .reason = HEC_THROTTLE_UNASKED,
     .xid = 31},
    {.watts = 190, /* bound by overhead */
     .busy = 0.3,
     .engine = 0.35,
     .sm = 0.31,
     .occupancy = 0.02,
     .tenants = {{.job = "4%d", .user = "ada", .command = "python3"}},
     .reports = true,
     .states = {[HEC_STATE_COMPUTE] = 0.3, [HEC_STATE_LAUNCH] = 0.55, [HEC_STATE_SYNC] = 0.1, [HEC_STATE_HOST] = 0.05},
     .cause = HEC_CAUSE_LAUNCH,
     .recoverable = 0.29,
     .reason = HEC_THROTTLE_UNASKED},
    {.watts = 210, /* bound by transfers */
     .busy = 0.3,
     .engine = 0.3,
     .sm = 0.22,
     .occupancy = 0.2,
     .bus_gb_s = 20,
     .tenants = {{.job = "5%d", .user = "grace", .command = "python3"}},
     .reports = true,
     .states = {[HEC_STATE_COMPUTE] = 0.3, [HEC_STATE_COPY] = 0.5, [HEC_STATE_SYNC] = 0.1, [HEC_STATE_HOST] = 0.1},
     .cause = HEC_CAUSE_COPY,
     .recoverable = 0.22,
     .reason = HEC_THROTTLE_UNASKED},
    {.watts = 124, /* held, and idle */
     .tenants = {{.user = "linus", .command = "jupyter-lab"}},
     .reason = HEC_THROTTLE_UNASKED},
    {.watts = 450, /* throttled */
     .busy = 0.93,
     .engine = 0.93,
     .sm = 0.9,
     .occupancy = 0.5,
     .tenants = {{.pod_namespace = "vision", .pod = "hot-%d", .container = "train"}},
     .reason = HEC_THROTTLE_THERMAL,
     .xid = 94},
    {.watts = FREE_W, .reason = HEC_THROTTLE_UNASKED}, /* nobody's */
    {.watts = 390,                                     /* healthy, shared */
     .busy = 0.8,
     .engine = 0.8,
     .sm = 0.75,
     .occupancy = 0.4,
     .tenants = {{.pod_namespace = "chat", .pod = "llm-%d", .container = "server"},
                 {.pod_namespace = "chat", .pod = "rank-%d", .container = "server"}},
     .reason = HEC_THROTTLE_POWER},
};

struct fleet {
    struct hec_dcgm_list dcgm;
    bool all;
    int gpus;
    int64_t start_ns;
};

/* What the page's writer takes for the registry of jobs. */
struct hec_causes {
    const struct fleet *fleet;
    int node;
    double seconds;
};

static const struct way *way_of(const struct fleet *fleet, int node, int gpu) {
    return &ways[(node * fleet->gpus + gpu) % (int)(sizeof ways / sizeof ways[0])];
}

static void number(char *name, size_t size, int number) {
    char text[254];
    const char *mark = strchr(name, '%');
    if (!mark)
        return;
    snprintf(text, sizeof text, "%.*s%d%s", (int)(mark - name), name, number, mark + 2);
    snprintf(name, size, "%.*s", (int)size - 1, text);
}

/* How many, at most two. */
static int tenants_of(const struct way *way, int node, struct hec_tenant out[2]) {
    int count = 0;
    for (; count < 2 && (way->tenants[count].pod[0] || way->tenants[count].user[0]); count++) {
        out[count] = way->tenants[count];
        number(out[count].pod, sizeof out[count].pod, node);
        number(out[count].job, sizeof out[count].job, node / 8); /* one job on eight nodes */
    }
    return count;
}

/* ---- one device ---- */

/* In the unit of model/metric.def. */
static int64_t reading(const struct way *way, int node, int tenants, double seconds, enum hec_metric metric) {
    switch (metric) {
    case HEC_GPU_ENERGY:
        return 0; /* dcgm-exporter's is a total */
    case HEC_GPU_POWER:
        return (int64_t)(1000 * way->watts);
    case HEC_GPU_POWER_LIMIT:
        return 700000;
    case HEC_GPU_SM_CLOCK:
        return way->sm > 0 || (tenants && node % 3 == 1) ? 1755 : 345; /* of some, clocks stay up */
    case HEC_GPU_MEM_CLOCK:
        return 3201;
    case HEC_GPU_ROWS_UNCORRECTABLE:
        return way->xid == 94 ? (int64_t)seconds : 0;
    case HEC_GPU_ROWS_FAILED:
        return way->xid == 94;
    case HEC_GPU_TEMPERATURE:
        return way->reason == HEC_THROTTLE_THERMAL ? 90 : (int64_t)(28 + way->watts / 20);
    case HEC_GPU_MEM_TEMPERATURE:
        return (int64_t)(28 + way->watts / 20);
    case HEC_GPU_MEM_USED:
        return tenants ? 96 << 20 : 600 << 10;
    case HEC_GPU_CONTEXTS:
        return tenants;
    case HEC_GPU_XID:
        return way->xid;
    case HEC_GPU_THROTTLE:
        return way->reason == HEC_THROTTLE_THERMAL ? HEC_THROTTLED_SOFTWARE_THERMAL | HEC_THROTTLED_HARDWARE_THERMAL
                                                   : 0;
    case HEC_GPM_PCIE_RX:
        return (int64_t)(way->bus_gb_s * 1e9 / 1024);
    case HEC_GPM_PCIE_TX:
    case HEC_GPM_NVLINK_RX:
    case HEC_GPM_NVLINK_TX:
        return (int64_t)(1e5 * way->sm);
    case HEC_GPM_GR_ACTIVE:
        return (int64_t)(1000 * way->engine);
    case HEC_GPM_SM_OCCUPANCY:
        return (int64_t)(1000 * way->occupancy);
    default:
        return (int64_t)(1000 * way->sm); /* of 1000 */
    }
}

/* Whose its joules are: what is above the floor and the floor itself, in equal parts. */
static void divide(struct hec_node_device *device, const struct way *way, const struct hec_tenant *tenants, int count,
                   double seconds) {
    int64_t left_uj = 1000 * device->total[HEC_NODE_ENERGY_MJ];
    double idle = fmin(1, (count ? FLOOR_W : FREE_W) / way->watts);
    for (int i = 0; i < count; i++) {
        struct hec_shares_row row = {.tenant = tenants[i]};
        row.uj[HEC_SHARES_ACTIVE] = (int64_t)((1 - idle) / count * 1000 * (double)device->total[HEC_NODE_ENERGY_MJ]);
        row.uj[HEC_SHARES_IDLE] = (int64_t)(idle / count * 1000 * (double)device->total[HEC_NODE_ENERGY_MJ]);
        if (i + 1 == count)
            row.uj[HEC_SHARES_IDLE] = left_uj - row.uj[HEC_SHARES_ACTIVE];
        row.use.held_ns = (int64_t)(seconds * 1e9);
        row.use.worked_ns = (int64_t)(way->busy / count * (double)row.use.held_ns);
        row.use.wasted_uj[way->reports    ? (int)way->cause
                          : count > 1     ? HEC_WASTE_UNKNOWN
                          : way->busy > 0 ? HEC_CAUSE_THROTTLE
                                          : HEC_CAUSE_IDLE] =
            (int64_t)((1 - way->busy) * (double)row.uj[HEC_SHARES_IDLE]);
        /* two who share a device are less sure than one who has it alone */
        row.error.floor_uj = (count > 1 ? 0.1 : 0.01) * (double)row.uj[HEC_SHARES_ACTIVE];
        left_uj -= row.uj[HEC_SHARES_ACTIVE] + row.uj[HEC_SHARES_IDLE];
        hec_shares_restore(device->shares, &row);
    }
    hec_shares_restore(device->shares, &(struct hec_shares_row){.uj[HEC_SHARES_IDLE] = left_uj});
    hec_shares_restore_floor(device->shares,
                             (struct hec_shares_floor){(int64_t)(1000 * FREE_W), (int64_t)(1000 * FLOOR_W)});
}

static void sum_up(struct hec_node_device *device, const struct way *way, int tenants, double seconds) {
    enum hec_agent_state rest = tenants ? HEC_AGENT_STATE_IDLE_ALLOCATED : HEC_AGENT_STATE_IDLE_FREE;
    int64_t *total = device->total, ms = (int64_t)(1000 * seconds);
    total[HEC_NODE_ENERGY_MJ] = (int64_t)(way->watts * (double)ms);
    total[HEC_NODE_BUSY_MJ] = (int64_t)(way->busy * (double)total[HEC_NODE_ENERGY_MJ]);
    total[HEC_NODE_BUSY_NS] = (int64_t)(way->busy * (double)ms) * HEC_NS_PER_MS;
    total[HEC_NODE_BUSY_MJ + rest] = total[HEC_NODE_ENERGY_MJ] - total[HEC_NODE_BUSY_MJ];
    total[HEC_NODE_BUSY_NS + rest] = ms * HEC_NS_PER_MS - total[HEC_NODE_BUSY_NS];
    if (way->reason < HEC_THROTTLE_UNASKED)
        total[HEC_NODE_THROTTLED_POWER_NS + way->reason] = (int64_t)(0.4 * (double)ms) * HEC_NS_PER_MS;
    if (way->reason == HEC_THROTTLE_THERMAL)
        total[HEC_NODE_THROTTLE_LOST_UJ] = 60000 * ms;
    for (enum hec_node_total i = HEC_NODE_PCIE_TX; i <= HEC_NODE_NVLINK_RX; i++)
        total[i] = (int64_t)(1e5 * 1.024 * way->sm * (double)ms);
}

/* NULL: no memory. */
static struct hec_node_device *make_device(const struct fleet *fleet, int node, int gpu, double seconds,
                                           int64_t now_ns) {
    const struct way *way = way_of(fleet, node, gpu);
    struct hec_node_device *device = calloc(1, sizeof *device);
    struct hec_tenant tenants[2];
    int count = tenants_of(way, node, tenants);
    if (!device || hec_shares_create(&device->shares) < 0) {
        free(device);
        return NULL;
    }
    device->info = (struct hec_device){
        .index = gpu, .name = "NVIDIA H200", .driver = "580.159.04", .power_limit_mw = 700000, .clock_max_mhz = 1980};
    snprintf(device->info.uuid, sizeof device->info.uuid, "GPU-%08x-0000-4000-8000-%012x", (unsigned)node,
             (unsigned)(node * fleet->gpus + gpu));
    snprintf(device->info.pci_bus_id, sizeof device->info.pci_bus_id, "00000000:%02X:00.0", 16u + (unsigned)gpu);
    device->seen = device->throttles = true;
    device->up = node % 40 != 0 || gpu != 0; /* its counter gives no new values */
    device->counter_ns = now_ns - (device->up ? 300 * HEC_NS_PER_MS : LOST_S * HEC_NS_PER_S);
    device->xid = way->xid;
    if (way->xid)
        hec_xids_add(&device->xids, way->xid, (int64_t)(seconds / 5));
    hec_verdict_clear(&device->verdict);
    for (int metric = 0; metric < HEC_METRIC_COUNT; metric++) {
        device->newest[metric] =
            (struct hec_node_value){now_ns, reading(way, node, count, seconds, (enum hec_metric)metric)};
        for (int i = 0; i < HEC_USE_READINGS; i++)
            hec_verdict_add(&device->verdict, (enum hec_metric)metric, now_ns, device->newest[metric].value);
    }
    sum_up(device, way, count, seconds);
    device->newest[HEC_GPU_ENERGY].value = device->total[HEC_NODE_ENERGY_MJ];
    divide(device, way, tenants, count, seconds);
    return device;
}

/* ---- a node ---- */

void hec_causes_read(struct hec_causes *causes,
                     void (*read)(void *context, const struct hec_causes_job *jobs, size_t count), void *context) {
    struct hec_causes_job jobs[HEC_VENDOR_DEVICES_MAX];
    double seconds[HEC_VENDOR_DEVICES_MAX][HEC_STATE_COUNT], joules[HEC_VENDOR_DEVICES_MAX][HEC_STATE_COUNT];
    struct hec_tenant tenants[HEC_VENDOR_DEVICES_MAX][2];
    const struct hec_causes_unit unit = {"sample", floor(100 * causes->seconds)};
    size_t count = 0;
    for (int gpu = 0; gpu < causes->fleet->gpus; gpu++) {
        const struct way *way = way_of(causes->fleet, causes->node, gpu);
        if (!way->reports)
            continue;
        tenants_of(way, causes->node, tenants[count]);
        for (int state = 0; state < HEC_STATE_COUNT; state++) { /* a tenth of the time is looked at */
            seconds[count][state] = 0.1 * way->states[state] * causes->seconds;
            joules[count][state] = way->watts * seconds[count][state];
        }
        jobs[count] = (struct hec_causes_job){.tenant = &tenants[count][0],
                                              .running = true,
                                              .device_s = causes->seconds,
                                              .seconds = seconds[count],
                                              .joules = joules[count],
                                              .priced = true,
                                              .cause = way->cause,
                                              .recoverable = way->recoverable,
                                              .units = &unit,
                                              .unit_count = 1};
        count++;
    }
    read(context, jobs, count);
}

static int make(const struct fleet *fleet, int number, double seconds, enum hec_exposition_format format,
                struct hec_buf *out) {
    struct hec_causes causes = {fleet, number, seconds};
    char hostname[32];
    struct hec_page_options options = {.dcgm = &fleet->dcgm,
                                       .devices = {.instances = true, .gpus = UINT64_MAX},
                                       .hostname_label = "Hostname",
                                       .hostname = hostname,
                                       .causes = &causes,
                                       .all_series = fleet->all};
    struct hec_page_agent agent = {.process = {.cpu_seconds = floor(2 * seconds) / 1000,
                                               .resident_bytes = 9 << 20,
                                               .virtual_bytes = 200 << 20,
                                               .open_fds = 20,
                                               .max_fds = 1024,
                                               .started_s = 1.8e9},
                                   .cpu_seconds = floor(2 * seconds) / 1000,
                                   .resident_bytes = 9 << 20,
                                   .state_saved = number % 40 != 1};
    struct hec_node *node = hec_node_new(HEC_NS_PER_S, NULL);
    int64_t now_ns = hec_clock_mono_ns();
    if (!node)
        return HEC_ERR_NOMEM;
    snprintf(hostname, sizeof hostname, "node-%04d", number);
    for (int gpu = 0; gpu < fleet->gpus; gpu++) {
        const struct way *way = way_of(fleet, number, gpu);
        struct hec_tenant tenants[2];
        node->devices[gpu] = make_device(fleet, number, gpu, seconds, now_ns);
        if (way->reports && number % 2 &&
            tenants_of(way, number, tenants) == 1) /* of others no window was analysed yet */
            hec_node_diagnose(node, &tenants[0], UINT64_C(1) << gpu, (int)way->cause);
    }
    node->domains[node->domain_count++] =
        (struct hec_node_domain){.metric = HEC_RAPL_PACKAGE_ENERGY, .total_uj = (int64_t)(180e6 * seconds)};
    hec_page_drop(&agent, "tenant", number % 40 == 2 ? (uint64_t)seconds : 0);
    int err = hec_page_make(node, &options, &agent, format, now_ns, out);
    hec_node_free(node);
    return err;
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
    if (fleet.gpus < 0 || fleet.gpus > HEC_VENDOR_DEVICES_MAX)
        return 2;
    fleet.all = argc > 1 && strchr(argv[1], 'a');
    hec_dcgm_list_default(&fleet.dcgm, fleet.all, argc > 1 && strchr(argv[1], '+'));
    if (argc == 3 && strcmp(argv[2], "serve") == 0)
        return serve(&fleet);
    if (argc != 5 || strcmp(argv[2], "page") != 0)
        return 2;
    hec_buf_init(&out, 64u << 20);
    int err = make(&fleet, atoi(argv[3]), atof(argv[4]),
                   argv[4][0] == '+' ? HEC_EXPOSITION_OPENMETRICS : HEC_EXPOSITION_PROMETHEUS, &out);
    fputs(hec_buf_text(&out), stdout);
    hec_buf_free(&out);
    return err < 0;
}
