/* `hec agent --power-budget W`: GPUs of the node whose jobs opted in share a budget of watts (act/budget.h), by limits of power that the
 * guard writes and takes back (act/power_guard.h).
 *
 *     hec_power_share_open(&options, &share, &why)   before rights are given up, and before any thread: the guardian keeps them
 *     hec_power_share_start(share, node, &why)
 *     hec_power_share_read(share, &said)             for a page, from any thread
 *     hec_power_share_close(share)                   what was there before is there again
 *
 * A thread of its own looks once an interval: a driver may take long to set a limit. Limits that fall are written before those that rise.
 * A device whose limit cannot be set, or was set by somebody else, is left alone until the agent starts again. */
#pragma once

#include "agent/node.h"
#include "agent/power_rules.h"

struct hec_power_share_options {
    double watts;
    const char *rules;           /* file (agent/power_rules.h), read again when it changes */
    const char *carbon, *prices; /* files of the grid (observe/grid/signals.h), for its conditions; NULL: none */
    const char *simulated;       /* the machine, as --sim takes it; NULL: this one */
    bool allowed;                /* limits of a real machine may be set */
};

struct hec_power_said {
    double budget_w, short_w, over_s;
    struct {
        bool known;
        enum hec_power_class power_class; /* HEC_POWER_CLASS_COUNT: it takes no part */
    } devices[HEC_DEVICE_MAX];            /* by hec_device.index */
};

struct hec_power_share;

int hec_power_share_open(const struct hec_power_share_options *options, struct hec_power_share **out,
                         struct hec_why *why);
int hec_power_share_start(struct hec_power_share *share, struct hec_node *node, struct hec_why *why);
void hec_power_share_read(struct hec_power_share *share, struct hec_power_said *said);
void hec_power_share_close(struct hec_power_share *share); /* NULL is fine */
