/* What `hec top` shows: the agent's view of the node (agent/node.h) at one instant, with what takes two of them: watts of processes
 * and the course of power. Figures that are not known are NAN, numbers < 0. */
#pragma once

#include "agent/node.h"
#include "model/throttle.h"

#define HEC_TOP_COURSE 120 /* readings of power that are remembered of a device */
#define HEC_TOP_PROCESSES_MAX 1024
#define HEC_TOP_TEXT 128

struct hec_top_device {
    int index;   /* hec_device.index */
    int ordinal; /* as users count them */
    char uuid[96], name[96];
    bool up, simulated;                              /* up: it answers; else it is lost */
    double power_w, limit_w, sm, tensor, dram, util; /* shares of 1; util: the driver's, "a kernel was there" */
    double pcie_in, pcie_out;                        /* bytes/s, as the device sees it */
    double memory_used, memory_total;                /* bytes */
    double temperature_c;
    int verdict;                   /* enum hec_agent_verdict, or HEC_VERDICT_UNKNOWN */
    int64_t throttle;              /* bits by enum hec_throttle; < 0: not known */
    double joules;                 /* by its counter, since top started */
    double joules_s;               /* over so long: from its first reading to the newest */
    double nobody;                 /* of these those of no process: idle, or not attributed */
    double ended;                  /* and those of processes that are gone */
    double course[HEC_TOP_COURSE]; /* W, the newest last */
};

struct hec_top_process {
    int32_t pid;
    int device;                        /* its index */
    char user[33], work[HEC_TOP_TEXT]; /* work: pod, container or job; "": none is known */
    char pod_namespace[64], pod[254], container[64], job[64];
    char command[HEC_IDENTITY_LINE];
    double joules, watts, sm, memory; /* joules since top started; sm: a share of 1; memory in bytes */
    double joules_off;                /* how far its joules above the idle floor may be off (agent/shares.h) */
    struct hec_top_reading {
        int64_t uj, t_ns; /* t_ns 0: none */
    } from, later;        /* watts are those since `from`, which becomes `later` from time to time */
};

/* Who wastes: a pod, a job or a program of a user, or the sum of a team. */
struct hec_top_waste {
    char team[65], user[33], pod[254], container[64], job[64], command[HEC_COMMAND_SIZE]; /* of a sum only the team */
    uint64_t devices;
    double joules, wasted, worked;    /* wasted: NAN where it is not known; worked: a share of the time held */
    double by_cause[HEC_WASTE_COUNT]; /* joules */
    struct hec_node_said said;
    enum hec_scale scale;
};

struct hec_top_state {
    bool waste; /* who wastes, instead of processes */
    struct hec_top_waste wastes[HEC_WASTE_TENANTS], teams[HEC_WASTE_TENANTS];
    int waste_count, team_count;
    char host[65], trouble[256]; /* trouble: why there are no devices; "": nothing is known of that */
    int64_t begun_ns, now_ns, wall_ns, interval_ns;
    struct hec_top_device devices[HEC_DEVICE_MAX];
    int device_count;
    struct hec_top_process processes[HEC_TOP_PROCESSES_MAX], before[HEC_TOP_PROCESSES_MAX];
    int process_count, before_count;
    uint64_t left_out; /* processes for which there was no room */
};

void hec_top_begin(struct hec_top_state *state, int64_t now_ns, int64_t interval_ns);
/* Takes the node's lock. */
/* Of a process. */
const struct hec_top_device *hec_top_device_at(const struct hec_top_state *state, int index);
void hec_top_take(struct hec_top_state *state, struct hec_node *node, int64_t now_ns);
/* "power, thermal"; "none"; "" where it is not known. */
const char *hec_top_throttle(const struct hec_top_device *device, char text[HEC_TOP_TEXT]);
/* "healthy" ..., "LOST" of a device that does not answer, "" where nothing can be said. */
const char *hec_top_verdict(const struct hec_top_device *device);
