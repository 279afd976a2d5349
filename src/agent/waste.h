/* What tenants of a node waste: joules that were drawn while they held a device and nothing ran for them, by cause; and whether more
 * devices would be of use to them.
 *
 * Causes are those of `hec run` (diagnose/cause.def) where a job that reports was analysed. Telemetry alone knows fewer: of a device
 * that waits for its host it cannot say what for. */
#pragma once

#include "diagnose/finding.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    HEC_WASTE_STARVED = HEC_CAUSE_COUNT, /* for data, copies or the program's own code: counters do not say which */
    HEC_WASTE_CLOCKS,                    /* nothing runs, and clocks stay high */
    HEC_WASTE_UNKNOWN,
    HEC_WASTE_COUNT
};

const char *hec_waste_name(int cause);  /* of the label: "data", "starved" */
const char *hec_waste_title(int cause); /* "starved for data" */
int hec_waste_find(const char *name);   /* HEC_WASTE_COUNT: no such cause */

/* What one tenant made of the devices that it held. */
struct hec_use_made {
    int64_t held_ns,
        worked_ns; /* devices by time: held, and of that with something running for it; where that is known */
    int64_t wasted_uj[HEC_WASTE_COUNT];
};

void hec_use_made_add(struct hec_use_made *sum, const struct hec_use_made *more);
/* Nothing below 0, nor more time worked than held, nor more wasted than idle_uj. */
bool hec_use_made_valid(const struct hec_use_made *use, int64_t idle_uj);
int64_t hec_use_made_wasted_uj(const struct hec_use_made *use);
double hec_use_made_worked(const struct hec_use_made *use); /* a share of the time held; NAN: not known */

/* Above HEC_SCALE_UTILISATION (diagnose/limits.h) of a sustained use more devices are honest; below, or where a cause is known that
 * costs, what is there is to be used first. cause: what is said of it now. */
#define HEC_WASTE_SUSTAINED_NS (300 * INT64_C(1000000000)) /* of less nothing is said */
enum hec_scale hec_waste_scale(const struct hec_use_made *use, int cause);
const char *hec_waste_scale_words(enum hec_scale scale); /* "scale out"; "" where it is unknown */

/* ---- of a node ---- */

struct hec_node;
struct hec_node_said;
struct hec_tenant;

#define HEC_WASTE_TENANTS 256

/* One tenant, over all devices of the node. */
struct hec_waste_row {
    const struct hec_tenant *of; /* the node's: as long as it is locked */
    uint64_t id, devices;        /* hec_tenant_id; bits of hec_device.index */
    int64_t uj[3];               /* by enum hec_shares_part */
    double off_uj;               /* sum of the bounds: never too small */
    struct hec_use_made use;
};

/* The sum of those of one team. */
struct hec_waste_team {
    const char *name;
    uint64_t devices;
    int64_t uj;
    struct hec_use_made use;
};

/* Of all that hold or held a device: how many. The caller has locked the node. */
int hec_waste_rows(const struct hec_node *node, struct hec_waste_row rows[HEC_WASTE_TENANTS]);
int64_t hec_waste_row_uj(const struct hec_waste_row *row);
/* Whether the joules that it wasted are known: what the device draws idle was seen, or it never idled. */
bool hec_waste_known(const struct hec_waste_row *row);
/* Why it does not do more, on the first of its devices of which something is known. */
struct hec_node_said hec_waste_said(const struct hec_node *node, const struct hec_waste_row *row, int64_t now_ns);
/* Most wasted joules first. Returns how many teams there are: namespaces of pods, else users. */
void hec_waste_sort(struct hec_waste_row *rows, int count);
int hec_waste_teams(const struct hec_waste_row *rows, int count, struct hec_waste_team teams[HEC_WASTE_TENANTS]);
const char *hec_waste_team_of(const struct hec_tenant *tenant);
