#include "base/list.h"
#include "diagnose/replay/parts.h"
#include "diagnose/states/state.h"

#include <math.h>
#include <stdlib.h>

/* Ends of one collective on two H100 differ by 0.3 us at most, but each process has its own idea of its device's clock: on one host
 * those were 16 to 41 us apart. */
#define TOGETHER_NS 60000 /* of NCCL's rings one rank may end so long before another */
#define APART_NS 200000
#define PAIRS_LEAST 8 /* of collectives, for a median of how far two clocks are apart */

static bool by_finish(const struct hec_schedule_call *call, int64_t *key) {
    *key = call->finish_ns;
    return call->kind == HEC_CALL_KERNEL && call->kernel_class == HEC_KERNEL_CLASS_COMM && hec_call_launched(call);
}

/* The median distance of a process's ends to the nearest of the first process's: how far its clock is ahead. room: of twice the list. */
static int64_t ahead_of_first(const struct hec_schedule *s, const uint32_t *list, size_t count, int process,
                              int64_t *room) {
    int64_t *first = room, *apart = room + count;
    size_t firsts = 0, n = 0, next = 0;
    for (size_t k = 0; k < count; k++)
        if (s->calls[list[k]].process == 0)
            first[firsts++] = s->calls[list[k]].finish_ns;
    for (size_t k = 0; k < count && firsts > 0; k++) {
        const struct hec_schedule_call *c = &s->calls[list[k]];
        if (c->process != process)
            continue;
        while (next + 1 < firsts && first[next + 1] <= c->finish_ns)
            next++;
        int64_t to_next = next + 1 < firsts ? c->finish_ns - first[next + 1] : INT64_MIN / 2;
        int64_t nearest = c->finish_ns - first[next];
        if (llabs(to_next) < llabs(nearest))
            nearest = to_next;
        if (llabs(nearest) < APART_NS)
            apart[n++] = nearest;
    }
    if (n < PAIRS_LEAST)
        return 0;
    qsort(apart, n, sizeof *apart, hec_by_int64);
    return apart[n / 2];
}

static int find_ahead(const struct hec_schedule *s, const uint32_t *list, size_t count, int64_t *ahead_ns) {
    int64_t *room = malloc((2 * count + 1) * sizeof *room);
    if (!room)
        return HEC_ERR_NOMEM;
    for (int p = 1; p < s->process_count; p++)
        ahead_ns[p] = ahead_of_first(s, list, count, p, room);
    free(room);
    return HEC_OK;
}

/* The same kernel, of one communicator as far as that is known. */
static bool alike(const struct hec_schedule *s, const struct hec_schedule_call *a, const struct hec_schedule_call *b) {
    if (a->what == b->what)
        return true;
    const struct hec_schedule_kernel x = hec_schedule_kernel(s, a->what), y = hec_schedule_kernel(s, b->what);
    return x.name && x.name == y.name && (!x.communicator || !y.communicator || x.communicator == y.communicator);
}

/* Of those that end within the bound of the first, the nearest of each process, of the same kernel, that had begun when the first ended. */
static size_t members(const struct hec_schedule *s, const uint32_t *list, size_t count, size_t first,
                      const int64_t *ahead_ns, uint32_t *out) {
    const struct hec_schedule_call *f = &s->calls[list[first]];
    int64_t apart_ns[UINT8_MAX];
    size_t n = 0;
    for (size_t k = first; k < count && n < UINT8_MAX; k++) {
        const struct hec_schedule_call *c = &s->calls[list[k]];
        int64_t apart = llabs((c->finish_ns - ahead_ns[c->process]) - (f->finish_ns - ahead_ns[f->process]));
        size_t m = 0;
        if (c->finish_ns - f->finish_ns > 2 * APART_NS)
            break;
        if (apart > TOGETHER_NS || c->start_ns >= f->finish_ns || c->flags & HEC_CALL_COLLECTIVE || !alike(s, c, f))
            continue;
        while (m < n && s->calls[out[m]].process != c->process)
            m++;
        if (m < n && apart_ns[m] <= apart)
            continue;
        out[m] = list[k];
        apart_ns[m] = apart;
        n += m == n;
    }
    return n;
}

/* Of a process, as its operations come in the order of their starts: how long it does nothing but wait for others, and how long its device
 * works; and of its host how long that is at its own code and calls. */
struct share {
    int64_t t_ns, wait_until_ns, busy_until_ns, idle_ns, busy_ns;
    int waits_for; /* process */
    double host_ns;
    bool joins;
};

/* Who begins a collective last, and when, by the first process's clock. */
struct latest {
    int64_t start_ns;
    int process;
};

struct meeting {
    struct hec_schedule *s;
    const int64_t *ahead_ns; /* by process: its clock is ahead of the first one's */
    struct latest *latest;   /* by group */
    struct share shares[UINT8_MAX + 1];
};

/* With loading and checkpoints. Calls that wait for the device, or for room in its queue, are as long as the device makes them. */
static int64_t host_of(const struct hec_schedule *s, const struct hec_schedule_call *c) {
    int64_t code_ns = hec_call_code_ns(s, c) + c->data_ns + c->checkpoint_ns, call_ns = c->end_ns - c->begin_ns;
    return (code_ns > 0 ? code_ns : 0) + (c->kind != HEC_CALL_WAIT && call_ns < HEC_LAUNCH_BLOCKED_NS ? call_ns : 0);
}

static void go_on(struct meeting *m, int process, int64_t t_ns) {
    struct share *p = &m->shares[process];
    int64_t free_ns = p->t_ns > p->busy_until_ns ? p->t_ns : p->busy_until_ns;
    int64_t idle_to_ns = t_ns < p->wait_until_ns ? t_ns : p->wait_until_ns;
    int64_t busy_to_ns = t_ns < p->busy_until_ns ? t_ns : p->busy_until_ns;
    if (idle_to_ns > free_ns) {
        p->idle_ns += idle_to_ns - free_ns;
        m->s->waits[p->waits_for].held_ns += idle_to_ns - free_ns;
    }
    if (busy_to_ns > p->t_ns)
        p->busy_ns += busy_to_ns - p->t_ns;
    p->t_ns = t_ns;
}

static void operation(struct meeting *m, const struct hec_schedule_call *c) {
    struct share *p = &m->shares[c->process];
    go_on(m, c->process, c->start_ns);
    if (c->flags & HEC_CALL_COLLECTIVE) {
        const struct latest *last = &m->latest[c->what];
        int64_t until_ns = last->start_ns + m->ahead_ns[c->process];
        p->joins = true;
        m->s->waits[c->process].count++;
        m->s->waits[c->process].last += last->process == c->process;
        if (last->process != c->process && until_ns > p->wait_until_ns) {
            p->wait_until_ns = until_ns;
            p->waits_for = last->process;
        }
    } else if (c->kernel_class != HEC_KERNEL_CLASS_COMM && c->finish_ns > p->busy_until_ns)
        p->busy_until_ns = c->finish_ns;
}

/* What hosts usually do: the median of those that communicate; of two the one that does less. */
static double usual_host(const struct hec_schedule *s, const struct share *shares) {
    int64_t list[UINT8_MAX + 1];
    size_t count = 0;
    for (int p = 0; p < s->process_count; p++)
        if (shares[p].joins)
            list[count++] = (int64_t)shares[p].host_ns;
    if (count == 0)
        return 0;
    qsort(list, count, sizeof *list, hec_by_int64);
    return (double)list[(count - 1) / 2];
}

/* The devices' work is made even; where that does not explain most of the difference, so is what the hosts do. */
static void set_even(struct hec_schedule *s, const struct share *shares) {
    double all_ns = (double)(s->to_ns - s->from_ns), host_sum = 0;
    double own_least = INFINITY, own_most = 0, busy_sum = 0, busy_least = INFINITY, busy_most = 0;
    double usual_ns = usual_host(s, shares);
    int count = 0;
    for (int p = 0; p < s->process_count; p++) {
        double busy = (double)shares[p].busy_ns, own = all_ns - (double)shares[p].idle_ns;
        s->even[p] = (struct hec_schedule_even){1, 1, 1};
        s->waits[p].waited_ns = shares[p].idle_ns;
        if (!shares[p].joins)
            continue;
        own_least = fmin(own_least, own);
        own_most = fmax(own_most, own);
        host_sum += shares[p].host_ns;
        busy_sum += busy;
        busy_least = fmin(busy_least, busy);
        busy_most = fmax(busy_most, busy);
        count++;
    }
    bool by_device = count > 0 && busy_least > 0 && busy_most - busy_least > (own_most - own_least) / 2;
    for (int p = 0; p < s->process_count; p++) {
        if (shares[p].joins && shares[p].busy_ns > 0)
            s->even[p].operation = busy_sum / count / (double)shares[p].busy_ns;
        if (shares[p].joins && shares[p].host_ns > 0 && !by_device)
            s->even[p].code = host_sum / count / shares[p].host_ns;
        if (shares[p].joins && shares[p].host_ns > usual_ns)
            s->even[p].usual_code = usual_ns / shares[p].host_ns;
    }
}

/* When each begins and has its last, and what the transfers take. */
static void find_latest(struct meeting *m) {
    struct hec_schedule *s = m->s;
    int64_t *end_ns = &s->met_to_ns;
    for (size_t g = 0; g < s->group_count; g++)
        m->latest[g] = (struct latest){INT64_MIN, 0};
    s->met_from_ns = INT64_MAX;
    *end_ns = INT64_MIN;
    for (size_t i = 0; i < s->count; i++) {
        const struct hec_schedule_call *c = &s->calls[i];
        if (!(c->flags & HEC_CALL_COLLECTIVE))
            continue;
        int64_t start_ns = c->start_ns - m->ahead_ns[c->process];
        if (start_ns > m->latest[c->what].start_ns)
            m->latest[c->what] = (struct latest){start_ns, c->process};
        s->met_from_ns = c->start_ns < s->met_from_ns ? c->start_ns : s->met_from_ns;
        *end_ns = c->finish_ns > *end_ns ? c->finish_ns : *end_ns;
        int64_t code_ns = hec_call_code_ns(s, c);
        s->collective_host_ns += c->end_ns - c->begin_ns + (code_ns > 0 && code_ns < HEC_STATE_BRIEF_NS ? code_ns : 0);
    }
    for (size_t g = 0; g < s->group_count; g++)
        s->transfer_ns += s->groups[g].least_ns;
}

/* Who comes to a collective first waits in it for the last, unless it has other work meanwhile. */
static void find_even(struct meeting *m, const uint32_t *in_order, size_t count) {
    struct hec_schedule *s = m->s;
    find_latest(m);
    for (int p = 0; p < s->process_count; p++)
        m->shares[p] = (struct share){.t_ns = INT64_MIN, .wait_until_ns = INT64_MIN, .busy_until_ns = INT64_MIN};
    for (size_t i = 0; i < s->count; i++)
        m->shares[s->calls[i].process].host_ns += (double)host_of(s, &s->calls[i]);
    for (size_t k = 0; k < count; k++)
        operation(m, &s->calls[in_order[k]]);
    for (int p = 0; p < s->process_count; p++)
        go_on(m, p, INT64_MAX);
    set_even(s, m->shares);
    hec_schedule_hosts(s);
}

static int make_even(struct hec_schedule *s, const int64_t *ahead_ns) {
    uint32_t *list = NULL;
    size_t count;
    struct meeting *m = calloc(1, sizeof *m);
    struct latest *latest = malloc((s->group_count + 1) * sizeof *latest);
    int err = m && latest ? hec_order_calls(s, hec_order_key_start, &list, &count) : HEC_ERR_NOMEM;
    if (!err) {
        m->s = s;
        m->ahead_ns = ahead_ns;
        m->latest = latest;
        find_even(m, list, count);
    }
    free(latest);
    free(m);
    free(list);
    return err;
}

static int connect_calls(struct hec_schedule *s) {
    s->following = malloc((s->count + 1) * sizeof *s->following);
    if (!s->following)
        return HEC_ERR_NOMEM;
    for (int p = 0; p < s->process_count; p++)
        s->first_call[p] = (uint32_t)s->count;
    for (size_t i = s->count; i-- > 0;) {
        s->following[i] = s->first_call[s->calls[i].process];
        s->first_call[s->calls[i].process] = (uint32_t)i;
    }
    return HEC_OK;
}

int hec_schedule_collectives(struct hec_schedule *s) {
    uint32_t *list = NULL;
    uint32_t of_one[UINT8_MAX];
    int64_t ahead_ns[256] = {0};
    size_t count = 0;
    int err = s->process_count > 1 ? hec_order_calls(s, by_finish, &list, &count) : HEC_OK;
    if (!err && count > 0 && !(s->groups = malloc(count * sizeof *s->groups)))
        err = HEC_ERR_NOMEM;
    if (!err && count > 0)
        err = find_ahead(s, list, count, ahead_ns);
    for (size_t k = 0; k < count && !err; k++) {
        if (s->calls[list[k]].flags & HEC_CALL_COLLECTIVE)
            continue;
        size_t n = members(s, list, count, k, ahead_ns, of_one);
        if (n < 2)
            continue;
        struct hec_schedule_group group = {(uint8_t)n, hec_schedule_kernel(s, s->calls[of_one[0]].what).share,
                                           INT64_MAX};
        for (size_t m = 0; m < n; m++) {
            int64_t lasts_ns = s->calls[of_one[m]].finish_ns - s->calls[of_one[m]].start_ns;
            group.least_ns = lasts_ns < group.least_ns ? lasts_ns : group.least_ns;
            s->calls[of_one[m]].flags |= HEC_CALL_COLLECTIVE;
            s->calls[of_one[m]].what = (uint32_t)s->group_count;
        }
        s->groups[s->group_count++] = group;
    }
    s->communication = s->alone = count;
    for (size_t g = 0; g < s->group_count; g++)
        s->alone -= s->groups[g].size;
    free(list);
    for (int p = 0; p < s->process_count; p++)
        s->even[p] = (struct hec_schedule_even){1, 1, 1};
    if (!err && s->group_count > 0)
        err = connect_calls(s);
    return err || s->group_count == 0 ? err : make_even(s, ahead_ns);
}
