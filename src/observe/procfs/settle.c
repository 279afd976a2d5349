/* Where the amounts of members that are gone went. See tree.h for the sum this keeps right. */
#include "observe/procfs/tree.h"

#include <string.h>

#define TOLERANCE_TICKS 2 /* user and system time are each cut to whole ticks */

/* The last known parent, gone or not. */
static struct hec_tree_member *parent_of(struct hec_tree *tree, int at) {
    struct hec_tree_member *live = hec_tree_find(tree, tree->members[at].parent);
    if (live || tree->members[at].parent == tree->self)
        return live;
    for (int i = at - 1; i >= 0; i--) /* parents come first */
        if (tree->members[i].gone && tree->members[i].record.pid == tree->members[at].parent)
            return &tree->members[i];
    return NULL;
}

/* Pass the totals of the gone up to the nearest live ancestor, or to hec. */
static void pass_up(struct hec_tree *tree, int64_t owed_to_self[]) {
    for (int i = 0; i < tree->count; i++)
        memset(tree->members[i].owed, 0, sizeof tree->members[i].owed);
    for (int i = tree->count - 1; i >= 0; i--) {
        const struct hec_tree_member *member = &tree->members[i];
        if (!member->gone)
            continue;
        struct hec_tree_member *parent = parent_of(tree, i);
        int64_t *owed = parent ? parent->owed : owed_to_self;
        for (int q = 0; q < HEC_AMOUNT_COUNT; q++)
            owed[q] += member->total[q] + member->owed[q];
    }
}

/* A parent absorbed more than the known gone explain: perhaps a child ended after it was read and before its parent
 * was, and is now counted twice. Read such children again; true when one is gone. (Or a child was too short to be
 * seen.) */
static bool recheck_children(struct hec_tree *tree, const struct hec_tree_member *parent) {
    bool found = false;
    for (int i = tree->count - 1; i >= 0; i--) {
        struct hec_tree_member *member = &tree->members[i];
        if (member->gone || member == parent)
            continue;
        bool is_child = parent ? member->parent == parent->record.pid : !hec_tree_find(tree, member->parent);
        if (is_child && !hec_tree_read_member(tree, member))
            found = member->gone = true;
    }
    return found;
}

void hec_tree_settle(struct hec_tree *tree) {
    int64_t tolerance_us = TOLERANCE_TICKS * tree->us_per_tick;
    int64_t owed[HEC_AMOUNT_COUNT];
    int64_t waited_us = hec_tree_waited_by_self_us(tree);
    for (int round = 0;; round++) {
        bool again = false;
        memset(owed, 0, sizeof owed);
        pass_up(tree, owed);
        if (round == 3)
            break;
        for (int i = tree->count - 1; i >= 0; i--) {
            struct hec_tree_member *member = &tree->members[i];
            int64_t unexplained = member->absorbed[HEC_AMOUNT_CPU_US] - member->owed[HEC_AMOUNT_CPU_US];
            if (member->gone || unexplained <= tolerance_us || !recheck_children(tree, member))
                continue;
            member->gone = !hec_tree_read_member(tree, member);
            again = true;
        }
        if (waited_us - tree->waited_by_self_us - owed[HEC_AMOUNT_CPU_US] > tolerance_us &&
            recheck_children(tree, NULL))
            again = true;
        if (!again)
            break;
        waited_us = hec_tree_waited_by_self_us(tree);
    }
    const int64_t tolerance[HEC_AMOUNT_COUNT] = {[HEC_AMOUNT_CPU_US] = tolerance_us};
    /* What did not turn up at the parent: it was waited for by hec, after its parent had ended; or by nobody. */
    for (int i = 0; i < tree->count; i++) {
        const struct hec_tree_member *member = &tree->members[i];
        for (int q = 0; q < HEC_AMOUNT_COUNT && !member->gone; q++) {
            int64_t lacking = member->owed[q] - member->absorbed[q] - member->carried[q];
            if (lacking > tolerance[q])
                owed[q] += lacking;
        }
    }
    int64_t absorbed_us = waited_us - tree->waited_by_self_us;
    tree->waited_by_self_us = waited_us;
    for (int q = 0; q < HEC_AMOUNT_COUNT; q++) {
        int64_t lacking = owed[q] - (q == HEC_AMOUNT_CPU_US ? absorbed_us : 0);
        if (lacking > tolerance[q])
            tree->kept[q] += lacking;
    }
}
