#include "agent/waste.h"

#include "agent/node.h"
#include "diagnose/limits.h"
#include "report/words/causes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *title;
} seen[] = {
    [HEC_WASTE_STARVED - HEC_CAUSE_COUNT] = {"starved", "starved: for data, copies or its own code"},
    [HEC_WASTE_CLOCKS - HEC_CAUSE_COUNT] = {"idle_clocks", "idle at high clocks"},
    [HEC_WASTE_UNKNOWN - HEC_CAUSE_COUNT] = {"unknown", "not known"},
};

const char *hec_waste_name(int cause) {
    return cause < HEC_CAUSE_COUNT ? hec_cause_name((enum hec_cause)cause) : seen[cause - HEC_CAUSE_COUNT].name;
}

const char *hec_waste_title(int cause) {
    return cause < HEC_CAUSE_COUNT ? hec_cause_title((enum hec_cause)cause) : seen[cause - HEC_CAUSE_COUNT].title;
}

int hec_waste_find(const char *name) {
    int cause = 0;
    while (cause < HEC_WASTE_COUNT && strcmp(hec_waste_name(cause), name) != 0)
        cause++;
    return cause;
}

void hec_use_made_add(struct hec_use_made *sum, const struct hec_use_made *more) {
    sum->held_ns += more->held_ns;
    sum->worked_ns += more->worked_ns;
    for (int cause = 0; cause < HEC_WASTE_COUNT; cause++)
        sum->wasted_uj[cause] += more->wasted_uj[cause];
}

bool hec_use_made_valid(const struct hec_use_made *use, int64_t idle_uj) {
    int64_t left_uj = idle_uj;
    for (int cause = 0; cause < HEC_WASTE_COUNT; cause++) {
        if (use->wasted_uj[cause] < 0 || use->wasted_uj[cause] > left_uj)
            return false;
        left_uj -= use->wasted_uj[cause];
    }
    return use->worked_ns >= 0 && use->worked_ns <= use->held_ns;
}

int64_t hec_use_made_wasted_uj(const struct hec_use_made *use) {
    int64_t sum_uj = 0;
    for (int cause = 0; cause < HEC_WASTE_COUNT; cause++)
        sum_uj += use->wasted_uj[cause];
    return sum_uj;
}

double hec_use_made_worked(const struct hec_use_made *use) {
    return use->held_ns > 0 ? (double)use->worked_ns / (double)use->held_ns : NAN;
}

enum hec_scale hec_waste_scale(const struct hec_use_made *use, int cause) {
    if (use->held_ns < HEC_WASTE_SUSTAINED_NS)
        return HEC_SCALE_UNKNOWN;
    bool costs = cause != HEC_CAUSE_NONE && cause != HEC_WASTE_UNKNOWN;
    return hec_use_made_worked(use) >= HEC_SCALE_UTILISATION && !costs ? HEC_SCALE_OUT : HEC_SCALE_OPTIMISE;
}

const char *hec_waste_scale_words(enum hec_scale scale) {
    static const char *const words[] = {
        [HEC_SCALE_UNKNOWN] = "", [HEC_SCALE_OPTIMISE] = "optimise first", [HEC_SCALE_OUT] = "scale out"};
    return words[scale];
}

int hec_waste_rows(const struct hec_node *node, struct hec_waste_row rows[HEC_WASTE_TENANTS]) {
    int count = 0;
    for (int i = 0; i < HEC_DEVICE_MAX; i++) {
        const struct hec_shares *shares = node->devices[i] ? node->devices[i]->shares : NULL;
        for (size_t row = HEC_SHARES_NAMED; shares && row < hec_shares_count(shares); row++) {
            const struct hec_shares_row *share = hec_shares_row(shares, row);
            uint64_t id = hec_tenant_id(&share->tenant);
            int at = 0;
            while (at < count && rows[at].id != id)
                at++;
            if (at == HEC_WASTE_TENANTS)
                continue;
            if (at == count)
                rows[count++] = (struct hec_waste_row){.of = &share->tenant, .id = id};
            for (int part = 0; part < HEC_SHARES_PART_COUNT; part++)
                rows[at].uj[part] += share->uj[part];
            rows[at].off_uj += hec_share_error_bound_uj(&share->error);
            rows[at].devices |= UINT64_C(1) << (i % 64);
            hec_use_made_add(&rows[at].use, &share->use);
        }
    }
    return count;
}

int64_t hec_waste_row_uj(const struct hec_waste_row *row) {
    return row->uj[HEC_SHARES_ACTIVE] + row->uj[HEC_SHARES_IDLE] + row->uj[HEC_SHARES_UNATTRIBUTED];
}

bool hec_waste_known(const struct hec_waste_row *row) {
    return row->uj[HEC_SHARES_IDLE] > 0 || (row->use.held_ns > 0 && row->use.worked_ns == row->use.held_ns);
}

struct hec_node_said hec_waste_said(const struct hec_node *node, const struct hec_waste_row *row, int64_t now_ns) {
    struct hec_node_said said = {HEC_WASTE_UNKNOWN, false, NAN};
    for (int i = 0; i < HEC_DEVICE_MAX && said.cause == HEC_WASTE_UNKNOWN; i++) {
        const struct hec_node_device *device = node->devices[i];
        if (device && row->devices >> (i % 64) & 1 && hec_node_holds(device, row->of))
            said = hec_node_says(node, device, row->of, now_ns);
    }
    return said;
}

static int by_waste(const void *one, const void *other) {
    const struct hec_waste_row *a = one, *b = other;
    int64_t x = hec_use_made_wasted_uj(&a->use), y = hec_use_made_wasted_uj(&b->use);
    return x != y ? (x < y) - (x > y) : (a->id > b->id) - (a->id < b->id);
}

void hec_waste_sort(struct hec_waste_row *rows, int count) {
    if (count > 1)
        qsort(rows, (size_t)count, sizeof *rows, by_waste);
}

int hec_waste_teams(const struct hec_waste_row *rows, int count, struct hec_waste_team teams[HEC_WASTE_TENANTS]) {
    int found = 0;
    for (int i = 0; i < count; i++) {
        const char *name = hec_waste_team_of(rows[i].of);
        int at = 0;
        while (at < found && strcmp(teams[at].name, name) != 0)
            at++;
        if (at == found)
            teams[found++] = (struct hec_waste_team){.name = name};
        teams[at].devices |= rows[i].devices;
        teams[at].uj += hec_waste_row_uj(&rows[i]);
        hec_use_made_add(&teams[at].use, &rows[i].use);
    }
    return found;
}

const char *hec_waste_team_of(const struct hec_tenant *tenant) {
    return tenant->pod_namespace[0] ? tenant->pod_namespace : tenant->user;
}
