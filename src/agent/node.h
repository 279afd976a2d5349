/* What the agent knows of its node: of each device the newest of every metric, who holds it, and totals that only grow. It is
 * filled by a recorder (the sink may be called from any thread) and by the clock (hec_node_tick).
 *
 * Every joule of a device's counter, and every second since it was first seen, is in exactly one state, and every joule has one
 * owner (agent/shares.h): both are made from the same increments, when the processes of the same reading are known. A counter that goes
 * back counts from 0 where its value can have been drawn since the last reading, else from its value on; so does one that
 * leaps ahead. What is drawn between two readings of which the device was lost, or the agent not there, is unobserved. */
#pragma once

#include "agent/identity.h"
#include "agent/job_map.h"
#include "agent/kubelet.h"
#include "agent/late.h"
#include "agent/metrics.h"
#include "agent/shares.h"
#include "agent/verdict.h"
#include "model/run.h"
#include "observe/rounds.h"

#include <pthread.h>

#define HEC_NODE_PROCESSES_MAX 256 /* of a device; more are counted as dropped */
#define HEC_NODE_PODS_MAX 32       /* containers or jobs that hold one device; of more none is known to hold it alone */
#define HEC_NODE_DOMAINS_MAX 32    /* of RAPL */
#define HEC_NODE_DIAGNOSED_MAX 256 /* tenants whose jobs report */

enum hec_node_total {
#define HEC_NODE_TOTAL(id, name) HEC_NODE_##id,
#include "agent/totals.def"
#undef HEC_NODE_TOTAL
    HEC_NODE_TOTAL_COUNT
};

const char *hec_node_total_name(enum hec_node_total total);

struct hec_node_value {
    int64_t t_ns; /* INT64_MIN: not known */
    int64_t value;
};

struct hec_node_process {
    struct hec_gpu_process now;
    int64_t util_sum, util_samples; /* as they were when joules were divided last */
    int sm_permille;                /* of that time */
};

/* What the last window of a job that reports said of the devices it uses. */
struct hec_node_diagnosed {
    uint64_t tenant, devices; /* hec_tenant_id; bits of hec_device.index */
    int cause;                /* enum hec_cause */
};

/* Why a device, or a tenant of it, does not do more. */
struct hec_node_said {
    int cause;   /* of waste.h; HEC_CAUSE_NONE: healthy */
    bool by_job; /* a job was analysed; else telemetry alone */
    double sure; /* of telemetry, 0..1; NAN of a job, and where nothing is known */
};

/* A MIG device. What its GPU instance did since joules were divided last, of the whole device: sums of permille x ns. */
struct hec_node_instance {
    struct hec_gpu_instance now;
    double sm_sum, engine_sum;
    int64_t window_ns;
    int sm_permille, engine_permille; /* of the last window, or of that time; -1: not known */
};

/* An increment of the counter that waits for the processes of its reading. */
struct hec_node_increment {
    bool waits, gap; /* gap: the device did not answer meanwhile */
    int64_t mj, begin_ns, end_ns;
    int64_t util_sum, util_count; /* utilisation in it so far, permille */
};

struct hec_node_device {
    struct hec_device info;
    bool seen;      /* the driver has named it */
    bool up;        /* it answers */
    bool gap;       /* it did not, since the last reading of its counter */
    bool throttles; /* it says why clocks are low */
    bool allocated; /* the kubelet gave it, or a part of it, to a container, or Slurm to a job */
    int64_t sampled_ns, accounted_ns;
    int64_t known_until_ns; /* what it does is taken for known so long */
    int64_t late_ns;        /* what rounds of readings had been late by when it was sampled */
    int64_t up_ns;          /* since when it answers */
    /* When its processes were listed, which ends a round of readings: last, and before that; INT64_MIN: never. */
    int64_t listed_ns[2];
    struct hec_node_value newest[HEC_METRIC_COUNT];
    int64_t counter_mj, counter_ns; /* the latest reading, counter_ns INT64_MIN: none yet */
    int64_t settled_mj;             /* the reading that the totals go up to */
    int64_t first_ns, settled_ns;   /* the first reading of this process' life, and that one */
    struct hec_node_increment increment;
    bool divided; /* an increment, among the processes of its own reading */
    int64_t total[HEC_NODE_TOTAL_COUNT];
    struct hec_shares *shares;
    struct hec_late *late; /* joules by state that are not shown yet, as those of shares */
    struct hec_verdict verdict;
    int64_t xid; /* the last error's since the agent started; 0: none. It outlives the driver and what was lost */
    struct hec_xids xids;
    int64_t clock_most_mhz; /* the highest SM clock that was seen */
    int64_t least_held_mw;  /* the lowest power that was read while somebody held it; 0: none */
    int64_t idle_ns; /* since when it has been idle, by its utilisation; INT64_MAX: it is not, or nothing is known */
    struct hec_node_process processes[HEC_NODE_PROCESSES_MAX];
    int process_count;
    struct hec_node_instance instances[HEC_GPU_INSTANCES_MAX]; /* of a divided device */
    int instance_count;
};

struct hec_node_domain {
    enum hec_metric metric; /* HEC_RAPL_PACKAGE_ENERGY, HEC_RAPL_DRAM_ENERGY */
    int index;
    int64_t counter_uj; /* as the collector gives it: it begins anew with each recorder */
    int64_t total_uj;
    bool fresh; /* a reading of the present recorder is there */
};

/* What was kept of a device that has not been seen since the start, or no more. */
struct hec_node_kept {
    char uuid[96];
    int64_t counter_mj;               /* < 0: none */
    int64_t counter_ns, accounted_ns; /* monotonic, also where that was before the start */
    int64_t total[HEC_NODE_TOTAL_COUNT];
    struct hec_xids xids;
    struct hec_shares *shares;
};

struct hec_node {
    pthread_mutex_t lock; /* of all that follows */
    struct hec_sink sink;
    int64_t interval_ns;
    struct hec_rounds rounds;                        /* of readings: the recorder's own, not under the lock */
    int64_t lag_ns;                                  /* joules are shown so much later; set before devices are seen */
    struct hec_node_device *devices[HEC_DEVICE_MAX]; /* by index; NULL: never seen */
    struct hec_node_domain domains[HEC_NODE_DOMAINS_MAX];
    int domain_count;
    struct hec_node_kept kept[HEC_DEVICE_MAX];
    int kept_count;
    bool driver;       /* some device was named since the recorder started */
    char trouble[256]; /* why there is no driver; "": there is, or nothing is known yet */
    uint64_t dropped_processes, dropped_devices;
    struct hec_identity *identity; /* NULL: who processes belong to is not asked */
    struct hec_kubelet *kubelet;   /* NULL: not asked; hec_node_free frees it */
    bool pods_failing;             /* the kubelet does not answer as it should */
    struct hec_job_map jobs;       /* what Slurm gave to whom */
    bool jobs_failing;
    struct hec_node_diagnosed diagnosed[HEC_NODE_DIAGNOSED_MAX];
    int diagnosed_count;
    struct hec_tenant tenants[HEC_NODE_PROCESSES_MAX]; /* room for one division */
    struct hec_shares_holder holders[HEC_NODE_PROCESSES_MAX + HEC_NODE_PODS_MAX];
};

/* The newest value of a metric; NAN where there is none, or none that is still of now. */
double hec_node_value_of(const struct hec_node *node, const struct hec_node_device *device, enum hec_metric metric,
                         int64_t now_ns);

/* What it draws without work, with a context on it where there is one now: an estimate; NAN: not known yet. */
double hec_node_idle_w(const struct hec_node *node, const struct hec_node_device *device, int64_t now_ns);

/* What is shown of the joules in one state, and of all. They are as old as those of the device's shares. */
int64_t hec_node_shown_mj(const struct hec_node_device *device, enum hec_agent_state state);
int64_t hec_node_shown_energy_mj(const struct hec_node_device *device);

/* Whether it is the first of its GPU instance: several may share one, and its figures. */
bool hec_node_instance_first(const struct hec_node_device *device, int i);
/* The container that holds that GPU instance alone (HEC_SHARES_WHOLE: the device) by the kubelet; NULL: none, several, or no kubelet. */
const struct hec_tenant *hec_node_instance_pod(const struct hec_node *node, const struct hec_node_device *device,
                                               int id);

/* The batch jobs that hold that instance (or the device) by the map of jobs. */
size_t hec_node_jobs(const struct hec_node *node, const struct hec_node_device *device, int id,
                     const struct hec_tenant *jobs[HEC_NODE_PODS_MAX]);

/* Whether the device, or a part of it, was given to anybody, whatever runs there. */
bool hec_node_is_allocated(const struct hec_node *node, const struct hec_node_device *device);
/* Who holds the device, into holders: first a tenant of each process. Returns how many there are. */
size_t hec_node_list_tenants(struct hec_node *node, struct hec_node_device *device, int64_t now_ns);
/* Who holds the device, and how much of it each used since the last division, into holders. util: of the device, permille. Returns how
 * many there are. */
size_t hec_node_list_holders(struct hec_node *node, struct hec_node_device *device, int util, int64_t now_ns);

/* What a window of that tenant's job said of these devices, which stands until the next; cause < 0: nothing, or the job has ended. Locks
 * the node. */
void hec_node_diagnose(struct hec_node *node, const struct hec_tenant *tenant, uint64_t devices, int cause);
/* What is said of that tenant on the device; NULL: of the device. A job that was analysed goes before telemetry, which says nothing of one
 * of several tenants but that nothing runs. */
struct hec_node_said hec_node_says(const struct hec_node *node, const struct hec_node_device *device,
                                   const struct hec_tenant *tenant, int64_t now_ns);

/* Why each holder leaves the device unused where it does. Who has no process on a device that others work on has nothing running. */
void hec_node_name_causes(const struct hec_node *node, const struct hec_node_device *device,
                          struct hec_shares_holder *holders, size_t count, int64_t now_ns);

/* By the last division of its joules. */
bool hec_node_holds(const struct hec_node_device *device, const struct hec_tenant *tenant);

/* NULL: no memory. Opens nothing; takes identity over, which may be NULL. */
struct hec_node *hec_node_new(int64_t interval_ns, struct hec_identity *identity);
void hec_node_free(struct hec_node *node);

/* The recorder has ended. What a lane that hangs had read before counts, though its processes were never listed: a reset may come. */
void hec_node_recorded(struct hec_node *node);
/* A recorder starts, and its readings begin anew. */
void hec_node_restart(struct hec_node *node);
/* Time goes on: what does not answer any more is down. */
void hec_node_tick(struct hec_node *node, int64_t now_ns);
/* Whether a new recorder might see more: no driver, or a device that does not answer. */
bool hec_node_troubled(struct hec_node *node);
/* Of each device that answers, joules were divided among processes that were listed. */
bool hec_node_divided(struct hec_node *node);
