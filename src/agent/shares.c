#include "agent/shares.h"

#include "agent/late.h"
#include "base/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SIGMAS_95 1.96

struct hec_share_error hec_share_error_unknown(void) {
    return (struct hec_share_error){NAN, NAN, NAN};
}

/* No negative figure; unknown is fine. */
static bool share_error_valid(const struct hec_share_error *error) {
    return !(error->turns_uj2 < 0 || error->figures_uj < 0 || error->floor_uj < 0);
}

static void share_error_add(struct hec_share_error *error, const struct hec_share_error *more) {
    error->turns_uj2 += more->turns_uj2;
    error->figures_uj += more->figures_uj;
    error->floor_uj += more->floor_uj;
}

double hec_share_error_bound_uj(const struct hec_share_error *error) {
    double variance = error->turns_uj2 + error->figures_uj * error->figures_uj;
    return sqrt(SIGMAS_95 * SIGMAS_95 * variance + error->floor_uj * error->floor_uj);
}

#define GROUPS_MAX 9    /* the whole device and eight MIG instances; NVIDIA divides into seven */
#define ABOVE_FLOOR 1.1 /* without a kernel: more than this is something else than idling (copies, a codec) */
#define OWED_MAX_NS (HEC_NS_PER_S / 5) /* the counter's value is up to 0.1 s old at both ends of an interval */
#define DUE_NS (10 * HEC_NS_PER_S)     /* of a tenant's power: what is made good later, at most */
#define CONTEST_NS (5 * HEC_NS_PER_S)  /* turns of so much time show how they vary */
#define FLOOR_OFF 0.05                 /* of a floor that is known: it rises with the temperature */
#define FLOOR_CONTEXT_MW 60000         /* a context adds to it: 46 to 51 W on H100 and H200 */
#define FLOOR_MOST_MW 150000           /* where nothing is known: 122 to 127 W on H100 and H200 with a context */
#define UJ_A_MW_NS 1e-6
#define STEPS_MAX 8 /* rows of one job, and one for its other steps */

enum { NOBODY, OTHER, ENDED, NAMED = HEC_SHARES_NAMED };

struct hec_shares {
    struct hec_shares_row rows[HEC_SHARES_ROWS_MAX];
    size_t count;
    int64_t total_uj;
    int64_t idle_owed_uj; /* of the floor, where the counter lagged behind */
    struct hec_floor free, held;
    int64_t assumed_mw;                 /* instead of held, until that is known; 0: none */
    struct hec_draws draws;             /* by row */
    double due_uj[HEC_SHARES_ROWS_MAX]; /* what its utilisation came to, less what it got */
    struct hec_draws_block contest;     /* what several ran for, of which the errors are not in their rows yet */
    bool idle_before;
    int64_t last_ns[HEC_SHARES_ROWS_MAX]; /* when the row, or another of its job, held the device */
    struct hec_late *late;                /* of each row and part; NULL: nothing is late */
    int64_t now_ns;                       /* end of the latest interval */
};

int hec_shares_create(struct hec_shares **out) {
    struct hec_shares *shares = calloc(1, sizeof *shares);
    if (!shares)
        return HEC_ERR_NOMEM;
    shares->count = NAMED;
    strcpy(shares->rows[OTHER].tenant.command, "(other)");
    strcpy(shares->rows[ENDED].tenant.command, "(ended)");
    *out = shares;
    return HEC_OK;
}

void hec_shares_free(struct hec_shares *shares) {
    if (shares)
        hec_late_free(shares->late);
    free(shares);
}

static size_t counter_of(size_t row, size_t part) {
    return row * HEC_SHARES_PART_COUNT + part;
}

void hec_shares_lag(struct hec_shares *shares, int64_t lag_ns) {
    hec_late_free(shares->late);
    shares->late = hec_late_new(counter_of(HEC_SHARES_ROWS_MAX, 0), lag_ns);
}

void hec_shares_pass(struct hec_shares *shares, int64_t now_ns) {
    hec_late_pass(shares->late, now_ns);
}

int64_t hec_shares_shown_uj(const struct hec_shares *shares, size_t row, enum hec_shares_part part) {
    return shares->rows[row].uj[part] - hec_late_of(shares->late, counter_of(row, part));
}

static void grow(struct hec_shares *shares, size_t row, enum hec_shares_part part, int64_t uj) {
    shares->rows[row].uj[part] += uj;
    hec_late_add(shares->late, counter_of(row, part), uj, shares->now_ns);
}

/* A row is there until its last value has been shown for two scrapes. */
static int64_t kept_ns(const struct hec_shares *shares) {
    int64_t lag_ns = hec_late_lag(shares->late), shown_ns = 3 * lag_ns;
    if (lag_ns == 0)
        return HEC_SHARES_KEEP_NS;
    return shown_ns > HEC_SHARES_KEEP_LEAST_NS ? shown_ns : HEC_SHARES_KEEP_LEAST_NS;
}

static size_t find_row(const struct hec_shares *shares, const struct hec_tenant *tenant) {
    size_t i = 0;
    while (i < shares->count && !hec_tenant_equal(&shares->rows[i].tenant, tenant))
        i++;
    return i;
}

/* Whose a tenant is: the namespace of its pod, else its user. */
static bool same_owner(const struct hec_tenant *a, const struct hec_tenant *b) {
    return strcmp(a->pod_namespace, b->pod_namespace) == 0 && (a->pod_namespace[0] || strcmp(a->user, b->user) == 0);
}

static bool same_job(const struct hec_tenant *a, const struct hec_tenant *b) {
    return a->job[0] && strcmp(a->job, b->job) == 0 && strcmp(a->user, b->user) == 0;
}

static bool may_go(const struct hec_shares *shares, size_t row, int64_t now_ns) {
    return now_ns - shares->last_ns[row] >= kept_ns(shares);
}

/* Rows that may not go yet, of all tenants or of one owner. */
static size_t rows_of(const struct hec_shares *shares, const struct hec_tenant *owner, int64_t now_ns) {
    size_t count = 0;
    for (size_t i = NAMED; i < shares->count; i++)
        count += !may_go(shares, i, now_ns) && (!owner || same_owner(&shares->rows[i].tenant, owner));
    return count;
}

/* What is neither taken nor must stay. */
static size_t room(const struct hec_shares *shares, int64_t now_ns) {
    return HEC_SHARES_ROWS_MAX - NAMED - rows_of(shares, NULL, now_ns);
}

/* The row that ended first, of those that may go; without a lag also of somebody who has more rows than who needs one. NOBODY: there
 * is none. */
static size_t evictable(const struct hec_shares *shares, const struct hec_tenant *tenant, int64_t now_ns) {
    size_t oldest = NOBODY, has = rows_of(shares, tenant, now_ns);
    for (size_t i = NAMED; i < shares->count; i++) {
        bool scraped = now_ns - shares->last_ns[i] >= HEC_SHARES_KEEP_LEAST_NS && hec_late_lag(shares->late) == 0;
        if ((oldest == NOBODY || shares->last_ns[i] < shares->last_ns[oldest]) &&
            (may_go(shares, i, now_ns) || (scraped && rows_of(shares, &shares->rows[i].tenant, now_ns) > has + 1)))
            oldest = i;
    }
    return oldest;
}

/* What several ran for goes into the error of each. */
static void end_contest(struct hec_shares *shares) {
    struct hec_draws_block *contest = &shares->contest;
    struct hec_draws_error errors[HEC_SHARES_ROWS_MAX];
    if (contest->ns > 0) {
        for (size_t row = 0; row < HEC_SHARES_ROWS_MAX; row++)
            contest->permille[row] /= (double)contest->ns;
        hec_draws_errors(&shares->draws, contest->permille, contest->ns, errors);
        for (size_t row = 0; row < shares->count; row++)
            share_error_add(&shares->rows[row].error,
                            &(struct hec_share_error){.turns_uj2 = contest->uj * contest->uj * errors[row].turns,
                                                      .figures_uj = contest->uj * sqrt(errors[row].figures)});
    }
    *contest = (struct hec_draws_block){0};
}

/* A row for a tenant who has none; OTHER when there is no room. */
static size_t new_row(struct hec_shares *shares, const struct hec_tenant *tenant, int64_t now_ns) {
    size_t i = shares->count;
    if (room(shares, now_ns) <= HEC_SHARES_ROWS_MAX / 4 && rows_of(shares, tenant, now_ns) >= HEC_SHARES_ROWS_MAX / 2)
        return OTHER; /* the last are for others */
    if (i < HEC_SHARES_ROWS_MAX) {
        shares->count++;
    } else if ((i = evictable(shares, tenant, now_ns)) != NOBODY) {
        end_contest(shares);
        share_error_add(&shares->rows[ENDED].error, &shares->rows[i].error);
        for (size_t part = 0; part < HEC_SHARES_PART_COUNT; part++) {
            shares->rows[ENDED].uj[part] += shares->rows[i].uj[part];
            hec_late_move(shares->late, counter_of(i, part), counter_of(ENDED, part));
        }
        hec_use_made_add(&shares->rows[ENDED].use, &shares->rows[i].use);
    } else {
        return OTHER;
    }
    shares->rows[i] = (struct hec_shares_row){.tenant = *tenant};
    shares->last_ns[i] = INT64_MIN / 2;
    shares->due_uj[i] = 0;
    hec_draws_set(&shares->draws, i, 0);
    return i;
}

/* The row held the device until then, and with it its job. */
static void hold(struct hec_shares *shares, size_t row, int64_t held_ns) {
    int64_t last_ns = held_ns;
    const struct hec_tenant *tenant = &shares->rows[row].tenant;
    shares->rows[row].held_ns = shares->last_ns[row] = held_ns;
    for (size_t i = NAMED; i < shares->count && tenant->job[0]; i++)
        if (same_job(&shares->rows[i].tenant, tenant) && shares->last_ns[i] > last_ns)
            last_ns = shares->last_ns[i];
    for (size_t i = NAMED; i < shares->count && tenant->job[0]; i++)
        if (same_job(&shares->rows[i].tenant, tenant))
            shares->last_ns[i] = last_ns;
}

/* The row of a job as a whole is that of its steps too where it has many, or where rows are scarce, so that it does not take those of
 * others. */
static struct hec_tenant bounded(const struct hec_shares *shares, const struct hec_tenant *tenant, int64_t now_ns) {
    struct hec_tenant rest = *tenant;
    size_t rows = 0;
    if (!tenant->step[0] || find_row(shares, tenant) < shares->count)
        return rest;
    rest.step[0] = '\0';
    for (size_t i = NAMED; i < shares->count; i++) {
        const struct hec_tenant *other = &shares->rows[i].tenant;
        if (!same_job(other, tenant))
            continue;
        rows++;
        if (!other->step[0])
            memcpy(rest.array_task, other->array_task, sizeof rest.array_task);
    }
    return rows >= STEPS_MAX || room(shares, now_ns) < HEC_SHARES_ROWS_MAX / 2 ? rest : *tenant;
}

/* What the rows say of one group (an instance, or the whole device), and then of all. */
struct claim {
    int sm_permille;
    bool context, allocated, unknown;
};

struct claims {
    struct claim of[GROUPS_MAX][HEC_SHARES_ROWS_MAX];
    int id[GROUPS_MAX], sm_permille[GROUPS_MAX];
    size_t groups;
    struct claim row[HEC_SHARES_ROWS_MAX]; /* summed over the groups; NOBODY: what is nobody's */
    int cause[HEC_SHARES_ROWS_MAX];
    bool contexts[GROUPS_MAX], any_context;
};

static size_t group_of(struct claims *claims, int id) {
    size_t g = 0;
    while (g < claims->groups && claims->id[g] != id)
        g++;
    if (g == GROUPS_MAX)
        return 0;
    if (g == claims->groups) {
        claims->id[claims->groups++] = id;
        claims->sm_permille[g] = HEC_SHARES_UNKNOWN;
    }
    return g;
}

static void add_holder(struct claims *claims, size_t row, const struct hec_shares_holder *holder) {
    size_t g = group_of(claims, holder->instance);
    struct claim *claim = &claims->of[g][row];
    claim->allocated |= !holder->context;
    claim->context |= holder->context;
    claim->unknown |= holder->context && holder->sm_permille < 0;
    claim->sm_permille += holder->sm_permille > 0 ? holder->sm_permille : 0;
    claims->contexts[g] |= holder->context;
    claims->any_context |= holder->context;
    claims->cause[row] = holder->cause;
}

/* Rows that exist are found before any is made, so that no tenant that holds the device is evicted for another. */
static void gather(struct hec_shares *shares, const struct hec_shares_interval *interval, struct claims *claims) {
    group_of(claims, HEC_SHARES_WHOLE);
    for (size_t i = 0; i < interval->instance_count; i++)
        claims->sm_permille[group_of(claims, interval->instances[i].id)] = interval->instances[i].sm_permille;
    for (size_t i = 0; i < interval->holder_count; i++) {
        struct hec_tenant tenant = bounded(shares, interval->holders[i].tenant, interval->end_ns);
        size_t row = find_row(shares, &tenant);
        if (row < shares->count)
            hold(shares, row, interval->end_ns);
    }
    for (size_t i = 0; i < interval->holder_count; i++) {
        struct hec_tenant tenant = bounded(shares, interval->holders[i].tenant, interval->end_ns);
        size_t row = find_row(shares, &tenant);
        if (row == shares->count)
            row = new_row(shares, &tenant, interval->end_ns);
        hold(shares, row, interval->end_ns);
        add_holder(claims, row, &interval->holders[i]);
    }
}

static void add_claim(struct claims *claims, size_t row, int sm_permille) {
    claims->row[row].context = true;
    claims->row[row].unknown |= sm_permille < 0;
    claims->row[row].sm_permille += sm_permille > 0 ? sm_permille : 0;
}

/* Who ran in a group, and how much. Where the driver does not say it by process, as under MIG, an instance of one tenant is
 * that tenant's, and one of several is nobody's. */
static void settle_group(struct claims *claims, size_t g) {
    size_t tenants = 0, last = NOBODY;
    bool unknown = false;
    /* who has no process there did not run, if anybody has one; in another pid namespace nobody has */
    bool hidden = !claims->contexts[g] && (claims->sm_permille[g] >= 0 || !claims->any_context);
    for (size_t row = 0; row < HEC_SHARES_ROWS_MAX; row++) {
        struct claim *claim = &claims->of[g][row];
        claims->row[row].allocated |= claim->allocated || claim->context;
        if (!claim->context && !(hidden && claim->allocated))
            continue;
        tenants++;
        last = row;
        unknown |= claim->unknown || !claim->context;
    }
    if (tenants == 0 && claims->sm_permille[g] > 0)
        add_claim(claims, NOBODY, claims->sm_permille[g]);
    else if (tenants == 1 && unknown)
        add_claim(claims, last, claims->sm_permille[g]);
    else if (unknown)
        add_claim(claims, NOBODY, claims->sm_permille[g]);
    for (size_t row = 0; row < HEC_SHARES_ROWS_MAX && !unknown; row++)
        if (claims->of[g][row].context)
            add_claim(claims, row, claims->of[g][row].sm_permille);
}

/* Integers of total in the proportion of weights that are not all 0, by largest remainders. */
static void apportion(int64_t total, const double weight[HEC_SHARES_ROWS_MAX], int64_t out[HEC_SHARES_ROWS_MAX]) {
    double sum = 0, rest[HEC_SHARES_ROWS_MAX];
    int64_t left = total;
    for (size_t i = 0; i < HEC_SHARES_ROWS_MAX; i++)
        sum += weight[i];
    for (size_t i = 0; i < HEC_SHARES_ROWS_MAX; i++) {
        double share = (double)total * (weight[i] / sum);
        out[i] = (int64_t)share < left ? (int64_t)share : left;
        rest[i] = weight[i] > 0 ? share - (double)out[i] : -1;
        left -= out[i];
    }
    while (left > 0) {
        size_t largest = 0;
        for (size_t i = 1; i < HEC_SHARES_ROWS_MAX; i++)
            if (rest[i] > rest[largest])
                largest = i;
        int64_t more = rest[largest] > 1 ? (int64_t)rest[largest] : 1; /* above 1 only where a double is too short */
        more = more < left ? more : left;
        out[largest] += more;
        rest[largest] -= (double)more;
        left -= more;
    }
}

static void give(struct hec_shares *shares, enum hec_shares_part part, int64_t total_uj,
                 const double weight[HEC_SHARES_ROWS_MAX], int64_t out[HEC_SHARES_ROWS_MAX]) {
    apportion(total_uj, weight, out);
    for (size_t i = 0; i < shares->count; i++)
        grow(shares, i, i == NOBODY && part == HEC_SHARES_ACTIVE ? HEC_SHARES_UNATTRIBUTED : part, out[i]);
}

static void give_idle(struct hec_shares *shares, int64_t idle_uj, const struct claims *claims,
                      int64_t out[HEC_SHARES_ROWS_MAX]) {
    double weight[HEC_SHARES_ROWS_MAX] = {0};
    size_t holders = 0;
    for (size_t row = OTHER; row < HEC_SHARES_ROWS_MAX; row++)
        if (claims->row[row].allocated) {
            weight[row] = 1;
            holders++;
        }
    weight[NOBODY] = holders == 0;
    give(shares, HEC_SHARES_IDLE, idle_uj, weight, out);
}

/* The one claimant there is, or NOBODY; *count: how many there are. */
static size_t claimants(const struct claims *claims, size_t *count, bool *unknown) {
    size_t last = NOBODY;
    *count = 0;
    *unknown = false;
    for (size_t row = 0; row < HEC_SHARES_ROWS_MAX; row++)
        if (claims->row[row].context) {
            ++*count;
            last = row;
            *unknown |= claims->row[row].unknown;
        }
    return *count == 1 ? last : NOBODY;
}

static void note_contest(struct hec_shares *shares, int64_t active_uj, int64_t duration_ns,
                         const struct claims *claims) {
    struct hec_draws_block *contest = &shares->contest;
    for (size_t row = 0; row < HEC_SHARES_ROWS_MAX; row++)
        contest->permille[row] += claims->row[row].sm_permille * (double)duration_ns;
    contest->uj += (double)active_uj;
    contest->ns += duration_ns;
    if (contest->ns >= CONTEST_NS)
        end_contest(shares);
}

/* Several tenants of which it is known how much each ran: by what that comes to, and what is due from before. */
static void give_by_use(struct hec_shares *shares, int64_t active_uj, int64_t duration_ns, const struct claims *claims,
                        int64_t out[HEC_SHARES_ROWS_MAX]) {
    double comes_to[HEC_SHARES_ROWS_MAX], weight[HEC_SHARES_ROWS_MAX], sum = 0, weights = 0;
    for (size_t row = 0; row < HEC_SHARES_ROWS_MAX; row++) {
        comes_to[row] = claims->row[row].sm_permille * hec_draws_of(&shares->draws, row);
        sum += comes_to[row];
    }
    for (size_t row = 0; row < HEC_SHARES_ROWS_MAX; row++) {
        comes_to[row] = sum > 0 ? comes_to[row] * (double)active_uj / sum : 0;
        weight[row] = claims->row[row].context ? fmax(0, comes_to[row] + shares->due_uj[row]) : 0;
        weights += weight[row];
    }
    if (!(weights > 0))
        weight[NOBODY] = 1;
    give(shares, HEC_SHARES_ACTIVE, active_uj, weight, out);
    for (size_t row = OTHER; row < HEC_SHARES_ROWS_MAX; row++) {
        double most_uj = (double)active_uj * DUE_NS / (double)duration_ns;
        shares->due_uj[row] = fmax(-most_uj, fmin(most_uj, shares->due_uj[row] + comes_to[row] - (double)out[row]));
    }
}

static void give_active(struct hec_shares *shares, int64_t active_uj, int64_t duration_ns, const struct claims *claims,
                        int64_t out[HEC_SHARES_ROWS_MAX]) {
    size_t count;
    bool unknown;
    size_t only = claimants(claims, &count, &unknown);
    if (count > 1 && !unknown) {
        give_by_use(shares, active_uj, duration_ns, claims, out);
        note_contest(shares, active_uj, duration_ns, claims);
        return;
    }
    double weight[HEC_SHARES_ROWS_MAX] = {0};
    weight[only] = 1;
    give(shares, HEC_SHARES_ACTIVE, active_uj, weight, out);
}

/* What the floor may be off by, each has too much or too little of as far as he has of the rest. */
static void add_floor_error(struct hec_shares *shares, const int64_t given_uj[HEC_SHARES_ROWS_MAX], int64_t active_uj,
                            int64_t duration_ns) {
    double held_mw = (double)hec_floor_mw(&shares->held);
    double off_mw = held_mw >= 0                       ? FLOOR_OFF * held_mw
                    : hec_floor_mw(&shares->free) >= 0 ? FLOOR_CONTEXT_MW
                                                       : FLOOR_MOST_MW;
    double off_uj = fmin((double)active_uj, off_mw * (double)duration_ns * UJ_A_MW_NS);
    for (size_t row = 0; row < shares->count && active_uj > 0; row++)
        shares->rows[row].error.floor_uj += off_uj * (double)given_uj[row] / (double)active_uj;
}

static void learn(struct hec_shares *shares, int64_t active_uj, int64_t duration_ns, const struct claims *claims) {
    double permille[HEC_SHARES_ROWS_MAX];
    size_t count;
    bool unknown;
    claimants(claims, &count, &unknown);
    bool measured = hec_floor_mw(&shares->held) >= 0;
    if (unknown || count == 0 || claims->row[NOBODY].context || (!measured && hec_floor_mw(&shares->free) < 0)) {
        hec_draws_break(&shares->draws);
        return;
    }
    for (size_t row = 0; row < HEC_SHARES_ROWS_MAX; row++)
        permille[row] = claims->row[row].sm_permille;
    hec_draws_add(&shares->draws, active_uj, duration_ns, permille, !measured);
    for (size_t row = NAMED; row < shares->count; row++)
        shares->rows[row].mw_a_permille = shares->draws.mean[row];
}

/* Permille of the interval in which the device worked for that row; UNKNOWN. */
static int worked_of(const struct claims *claims, size_t row, const struct hec_shares_interval *interval, bool idle) {
    size_t count;
    bool unknown;
    const struct claim *claim = &claims->row[row];
    if (idle || (claims->any_context && !claim->context))
        return 0;
    if (claimants(claims, &count, &unknown) == row && interval->busy_permille >= 0)
        return interval->busy_permille;
    return claim->unknown || !claim->context ? HEC_SHARES_UNKNOWN : claim->sm_permille;
}

/* Of its part of the floor, what was drawn while nothing ran for it is what holding the device took. */
static void note_use(struct hec_shares *shares, const int64_t idle_uj[HEC_SHARES_ROWS_MAX],
                     const struct hec_shares_interval *interval, const struct claims *claims, bool idle) {
    for (size_t row = OTHER; row < shares->count; row++) {
        int worked = claims->row[row].allocated ? worked_of(claims, row, interval, idle) : HEC_SHARES_UNKNOWN;
        if (worked < 0)
            continue;
        worked = worked < 1000 ? worked : 1000;
        shares->rows[row].use.wasted_uj[claims->cause[row]] += idle_uj[row] * (1000 - worked) / 1000;
        shares->rows[row].use.worked_ns += interval->duration_ns / 1000 * worked;
        shares->rows[row].use.held_ns += interval->duration_ns;
    }
}

static bool no_kernel(const struct hec_shares_interval *interval) {
    bool known = interval->busy_permille == 0 || (interval->busy_permille < 0 && interval->instance_count > 0);
    for (size_t i = 0; i < interval->holder_count; i++)
        if (interval->holders[i].sm_permille > 0)
            return false;
    for (size_t i = 0; i < interval->instance_count; i++)
        if (interval->instances[i].sm_permille != 0 && interval->busy_permille != 0)
            return false;
    return known && interval->busy_permille <= 0;
}

/* How much of the increment is what the device draws anyway. */
static int64_t idle_of(struct hec_shares *shares, const struct hec_shares_interval *interval, bool idle, bool held) {
    int64_t energy_uj = interval->energy_mj * 1000;
    int64_t floor_mw = hec_floor_mw(held ? &shares->held : &shares->free);
    if (floor_mw < 0 && held && !idle)
        floor_mw = hec_shares_held_floor(shares);
    if (floor_mw < 0) {
        shares->idle_owed_uj = idle ? INT64_MAX / 2 : 0; /* as much as there may be, once the floor is known */
        return idle ? energy_uj : 0;
    }
    double floor_uj = (double)floor_mw * (double)interval->duration_ns * UJ_A_MW_NS;
    int64_t most_uj = (int64_t)((double)floor_mw * (double)OWED_MAX_NS * UJ_A_MW_NS);
    if (idle != shares->idle_before)
        shares->idle_owed_uj = idle ? most_uj : 0;
    int64_t owed_uj = shares->idle_owed_uj + (int64_t)(idle ? ABOVE_FLOOR * floor_uj : floor_uj);
    int64_t idle_uj = owed_uj < energy_uj ? owed_uj : energy_uj;
    shares->idle_owed_uj = owed_uj - idle_uj < most_uj ? owed_uj - idle_uj : most_uj;
    return idle_uj;
}

static void add_unobserved(struct hec_shares *shares, int64_t energy_uj) {
    grow(shares, NOBODY, HEC_SHARES_UNATTRIBUTED, energy_uj);
    hec_draws_break(&shares->draws);
    shares->idle_before = false;
    shares->idle_owed_uj = 0;
}

int hec_shares_add(struct hec_shares *shares, const struct hec_shares_interval *interval) {
    int64_t energy_uj;
    if (interval->energy_mj < 0 || interval->duration_ns < 0 ||
        __builtin_mul_overflow(interval->energy_mj, 1000, &energy_uj) ||
        __builtin_add_overflow(shares->total_uj, energy_uj, &(int64_t){0}))
        return HEC_ERR_USAGE;
    shares->total_uj += energy_uj;
    shares->now_ns = interval->end_ns;
    if (!interval->observed || interval->duration_ns == 0) {
        add_unobserved(shares, energy_uj);
        return HEC_OK;
    }
    struct claims claims = {0};
    int64_t given_uj[HEC_SHARES_ROWS_MAX] = {0};
    gather(shares, interval, &claims);
    for (size_t g = 0; g < claims.groups; g++)
        settle_group(&claims, g);
    shares->draws.measured = interval->instance_count > 0;
    bool idle = no_kernel(interval), held = claims.any_context || !idle;
    int64_t idle_uj = idle_of(shares, interval, idle, held);
    shares->idle_before = idle;
    give_idle(shares, idle_uj, &claims, given_uj);
    note_use(shares, given_uj, interval, &claims, idle);
    give_active(shares, energy_uj - idle_uj, interval->duration_ns, &claims, given_uj);
    add_floor_error(shares, given_uj, energy_uj - idle_uj, interval->duration_ns);
    learn(shares, energy_uj - idle_uj, interval->duration_ns, &claims);
    return HEC_OK;
}

void hec_shares_assume(struct hec_shares *shares, int64_t held_mw) {
    shares->assumed_mw = held_mw > 0 ? held_mw : 0;
}

int64_t hec_shares_held_floor(const struct hec_shares *shares) {
    int64_t held_mw = hec_floor_mw(&shares->held), free_mw = hec_floor_mw(&shares->free);
    int64_t assumed_mw = shares->assumed_mw > 0 ? shares->assumed_mw : HEC_SHARES_UNKNOWN;
    if (held_mw >= 0)
        return held_mw;
    return assumed_mw > free_mw ? assumed_mw : free_mw; /* a context adds to what it draws without one */
}

void hec_shares_idle(struct hec_shares *shares, bool held, int64_t power_mw, int64_t duration_ns) {
    if (power_mw > 0 && duration_ns > 0)
        hec_floor_add(held ? &shares->held : &shares->free, power_mw, duration_ns);
}

size_t hec_shares_count(const struct hec_shares *shares) {
    return shares->count;
}

const struct hec_shares_row *hec_shares_row(const struct hec_shares *shares, size_t i) {
    return &shares->rows[i];
}

int64_t hec_shares_total_uj(const struct hec_shares *shares) {
    return shares->total_uj;
}

struct hec_shares_floor hec_shares_floor(const struct hec_shares *shares) {
    return (struct hec_shares_floor){hec_floor_mw(&shares->free), hec_floor_mw(&shares->held)};
}

int hec_shares_restore(struct hec_shares *shares, const struct hec_shares_row *row) {
    int64_t total_uj = shares->total_uj;
    for (int part = 0; part < HEC_SHARES_PART_COUNT; part++)
        if (row->uj[part] < 0 || __builtin_add_overflow(total_uj, row->uj[part], &total_uj))
            return HEC_ERR_CORRUPT;
    if (!share_error_valid(&row->error) || !hec_use_made_valid(&row->use, row->uj[HEC_SHARES_IDLE]))
        return HEC_ERR_CORRUPT;
    size_t i = find_row(shares, &row->tenant);
    if (i == shares->count)
        i = shares->count < HEC_SHARES_ROWS_MAX ? shares->count++ : ENDED;
    struct hec_shares_row *here = &shares->rows[i];
    if (i >= NAMED) {
        here->tenant = row->tenant;
        hold(shares, i, row->held_ns);
        hec_draws_set(&shares->draws, i, row->mw_a_permille);
        here->mw_a_permille = shares->draws.mean[i];
    }
    for (int part = 0; part < HEC_SHARES_PART_COUNT; part++)
        here->uj[part] += row->uj[part];
    share_error_add(&here->error, &row->error);
    hec_use_made_add(&here->use, &row->use);
    shares->total_uj = total_uj;
    return HEC_OK;
}

void hec_shares_restore_floor(struct hec_shares *shares, struct hec_shares_floor floor) {
    hec_floor_set(&shares->free, floor.free_mw);
    hec_floor_set(&shares->held, floor.held_mw);
}
