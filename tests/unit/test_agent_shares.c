/* Shares of a device's joules: sums, rows that come and go, the floor. Their error is in test_agent_shares_truth.c. */
#include "agent/draws.h"
#include "agent/shares.h"
#include "base/error.h"
#include "bench/uniform.h"
#include "unit.h"

#define SECOND HEC_NS_PER_S

static struct hec_shares *shares;

static int set_up(void **state) {
    (void)state;
    return hec_shares_create(&shares);
}

static int tear_down(void **state) {
    (void)state;
    hec_shares_free(shares);
    return 0;
}
EACH_TEST(set_up, tear_down)

static struct hec_tenant named(const char *command) {
    struct hec_tenant tenant = {.user = "ann"};
    snprintf(tenant.command, sizeof tenant.command, "%s", command);
    return tenant;
}

static const struct hec_shares_row *row_of(const struct hec_shares *of, const char *command) {
    for (size_t i = 0; i < hec_shares_count(of); i++)
        if (strcmp(hec_shares_row(of, i)->tenant.command, command) == 0)
            return hec_shares_row(of, i);
    return NULL;
}

static int64_t sum_of(const struct hec_shares *of) {
    int64_t sum = 0;
    for (size_t i = 0; i < hec_shares_count(of); i++)
        for (int part = 0; part < HEC_SHARES_PART_COUNT; part++)
            sum += hec_shares_row(of, i)->uj[part];
    return sum;
}

/* `seconds` of intervals of 1 s at so many watts, with a reading of the power in each; sm_permille < 0: unknown. */
static void play(int seconds, int watts, int busy_permille, const struct hec_shares_holder *holders, size_t count) {
    static int64_t now_ns;
    for (int i = 0; i < seconds; i++) {
        now_ns += SECOND;
        if (busy_permille == 0)
            hec_shares_idle(shares, count > 0, watts * INT64_C(1000), SECOND);
        struct hec_shares_interval interval = {.end_ns = now_ns,
                                               .duration_ns = SECOND,
                                               .energy_mj = watts * INT64_C(1000),
                                               .observed = true,
                                               .busy_permille = busy_permille,
                                               .holders = holders,
                                               .holder_count = count};
        assert_int_equal(hec_shares_add(shares, &interval), HEC_OK);
        assert_int_equal(sum_of(shares), hec_shares_total_uj(shares));
    }
}

TEST(floor_is_measured_and_idle_belongs_to_holders) {
    struct hec_tenant a = named("a"), b = named("b");
    struct hec_shares_holder both[] = {{&a, true, HEC_SHARES_WHOLE, 0}, {&b, true, HEC_SHARES_WHOLE, 0}};

    /* busy from the start: no floor, and nothing is called idle */
    both[0].sm_permille = 500;
    both[1].sm_permille = 250;
    play(10, 600, 900, both, 2);
    assert_int_equal(hec_shares_floor(shares).held_mw, HEC_SHARES_UNKNOWN);
    assert_int_equal(row_of(shares, "a")->uj[HEC_SHARES_ACTIVE], INT64_C(4000000000));
    assert_int_equal(row_of(shares, "b")->uj[HEC_SHARES_ACTIVE], INT64_C(2000000000));

    /* no kernel: all is idle, in equal parts, and after some seconds that agree the floor is known */
    both[0].sm_permille = both[1].sm_permille = 0;
    play(12, 120, 0, both, 2);
    assert_int_equal(hec_shares_floor(shares).held_mw, 120000);
    assert_int_equal(row_of(shares, "a")->uj[HEC_SHARES_IDLE], INT64_C(720000000));
    assert_int_equal(row_of(shares, "b")->uj[HEC_SHARES_IDLE], INT64_C(720000000));

    both[0].sm_permille = 500;
    play(10, 520, 500, both, 2);
    assert_int_equal(row_of(shares, "a")->uj[HEC_SHARES_ACTIVE], INT64_C(8000000000));
    assert_int_equal(row_of(shares, "b")->uj[HEC_SHARES_ACTIVE], INT64_C(2000000000));
    assert_int_equal(row_of(shares, "b")->uj[HEC_SHARES_IDLE], INT64_C(1320000000));

    /* nobody holds it: idle of nobody, with a floor of its own */
    play(12, 80, 0, NULL, 0);
    assert_int_equal(hec_shares_floor(shares).free_mw, 80000);
    assert_int_equal(hec_shares_row(shares, 0)->uj[HEC_SHARES_IDLE], INT64_C(960000000));
    /* and if it works, nobody knows for whom */
    play(10, 620, 900, NULL, 0);
    assert_int_equal(hec_shares_row(shares, 0)->uj[HEC_SHARES_UNATTRIBUTED], INT64_C(5000000000));
}

/* What cannot be divided evenly: the largest remainders, and of equal ones the first, have one more. */
TEST(equal_parts_differ_by_a_microjoule) {
    struct hec_tenant tenants[11];
    struct hec_shares_holder holders[11];
    for (int i = 0; i < 11; i++) {
        tenants[i] = named((char[]){(char)('a' + i), '\0'});
        holders[i] = (struct hec_shares_holder){&tenants[i], true, HEC_SHARES_WHOLE, 0};
    }
    play(1, 1, 0, holders, 11); /* 1 J: 90909 uJ each, and one left */
    for (size_t i = 0; i < 11; i++)
        assert_int_equal(row_of(shares, tenants[i].command)->uj[HEC_SHARES_IDLE], 90909 + (i == 0));
    play(2, 5, 0, holders, 7); /* 714285 each, and five left, twice */
    for (size_t i = 0; i < 11; i++)
        assert_int_equal(row_of(shares, tenants[i].command)->uj[HEC_SHARES_IDLE],
                         90909 + (i == 0) + (i < 7 ? 2 * (714285 + (i < 5)) : 0));
    for (int i = 0; i < 4; i++)
        holders[i].sm_permille = 100 * (i + 1); /* 1 to 4 of 10 parts of what is above a floor of 0 */
    int64_t before[4];
    for (int i = 0; i < 4; i++)
        before[i] = row_of(shares, tenants[i].command)->uj[HEC_SHARES_ACTIVE];
    struct hec_shares_interval odd = {.end_ns = INT64_C(1) << 60,
                                      .duration_ns = SECOND,
                                      .energy_mj = 7,
                                      .observed = true,
                                      .busy_permille = 1000,
                                      .holders = holders,
                                      .holder_count = 4};
    assert_int_equal(hec_shares_add(shares, &odd), HEC_OK);
    for (int i = 0; i < 4; i++)
        assert_int_equal(row_of(shares, tenants[i].command)->uj[HEC_SHARES_ACTIVE] - before[i], 700 * (i + 1));
}

/* Readings of 0.2 s of a counter that steps every 0.1 s: 82 W come as 0, 8 or 25 J. All of it is idling. */
/* What was kept of a tenant's draw: nothing below 0, and no number is nothing. */
TEST(a_draw_that_was_kept) {
    static const double cases[][2] = {{-0.5, 0}, {0, 0}, {NAN, 0}, {INFINITY, 0}, {0.5, 0.5}, {1e-3, 1e-3}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hec_draws draws = {.overall = i % 2};
        hec_draws_set(&draws, 3, cases[i][0]);
        assert_near(draws.mean[3], cases[i][1], 0);
        assert_near(draws.overall, i % 2 ? 1 : cases[i][1], 0);
        assert_true((draws.covariance[3][3] > 0) == (cases[i][1] > 0));
    }
}

TEST(steps_of_the_counter_are_not_work) {
    static const int steps[] = {2, 2, 1, 3, 2, 2, 3, 1, 2, 2, 1, 2, 3, 2};
    for (int i = 0; i < 500; i++) {
        struct hec_shares_interval interval = {
            .end_ns = i * SECOND / 5, .duration_ns = SECOND / 5, .observed = true, .energy_mj = 8200 * steps[i % 14]};
        hec_shares_idle(shares, false, 82000, SECOND / 5);
        assert_int_equal(hec_shares_add(shares, &interval), HEC_OK);
    }
    assert_int_equal(hec_shares_floor(shares).free_mw, 82000);
    assert_int_equal(hec_shares_row(shares, 0)->uj[HEC_SHARES_IDLE], hec_shares_total_uj(shares));
}

TEST(what_nobody_can_say_is_unattributed) {
    struct hec_tenant a = named("a"), b = named("b"), pod = {.pod = "p", .pod_namespace = "n"};
    struct hec_shares_holder holders[] = {{&a, true, HEC_SHARES_WHOLE, HEC_SHARES_UNKNOWN},
                                          {&b, true, HEC_SHARES_WHOLE, 400}};
    play(1, 100, HEC_SHARES_UNKNOWN, holders, 2); /* one of two is unknown */
    assert_int_equal(hec_shares_row(shares, 0)->uj[HEC_SHARES_UNATTRIBUTED], 100000000);
    play(1, 100, HEC_SHARES_UNKNOWN, holders, 1); /* alone: it was it, whatever it did */
    assert_int_equal(row_of(shares, "a")->uj[HEC_SHARES_ACTIVE], 100000000);
    struct hec_shares_holder given[] = {{&pod, false, HEC_SHARES_WHOLE, 0}, {&b, true, HEC_SHARES_WHOLE, 400}};
    play(1, 100, 500, given, 1); /* busy, and no process to be seen: the pod that it was given to */
    assert_int_equal(row_of(shares, "")->uj[HEC_SHARES_UNATTRIBUTED], 100000000);
    assert_int_equal(hec_shares_row(shares, hec_shares_count(shares) - 1)->uj[HEC_SHARES_ACTIVE], 100000000);
    play(1, 100, 500, given, 2); /* a process is there: the pod did not run */
    assert_int_equal(row_of(shares, "b")->uj[HEC_SHARES_ACTIVE], 100000000);
    struct hec_shares_interval blind = {
        .end_ns = 1, .duration_ns = SECOND, .energy_mj = 5, .holders = holders, .holder_count = 2};
    assert_int_equal(hec_shares_add(shares, &blind), HEC_OK);
    assert_int_equal(hec_shares_row(shares, 0)->uj[HEC_SHARES_UNATTRIBUTED], 100005000);
    blind.energy_mj = -1;
    assert_int_equal(hec_shares_add(shares, &blind), HEC_ERR_USAGE);
    blind.energy_mj = INT64_MAX / 1000 + 1;
    assert_int_equal(hec_shares_add(shares, &blind), HEC_ERR_USAGE);
    assert_int_equal(sum_of(shares), hec_shares_total_uj(shares));
}

TEST(instances_are_divided_by_what_they_did) {
    struct hec_tenant a = named("a"), b = named("b"), c = named("c");
    struct hec_shares_holder holders[] = {{&a, true, 1, HEC_SHARES_UNKNOWN},
                                          {&b, true, 2, HEC_SHARES_UNKNOWN},
                                          {&c, true, 3, HEC_SHARES_UNKNOWN},
                                          {&a, true, 3, HEC_SHARES_UNKNOWN}};
    struct hec_shares_instance instances[] = {{1, 300}, {2, 100}, {3, 100}};
    struct hec_shares_interval interval = {.end_ns = SECOND,
                                           .duration_ns = SECOND,
                                           .energy_mj = 100,
                                           .observed = true,
                                           .busy_permille = HEC_SHARES_UNKNOWN,
                                           .holders = holders,
                                           .holder_count = 4,
                                           .instances = instances,
                                           .instance_count = 3};
    assert_int_equal(hec_shares_add(shares, &interval), HEC_OK);
    assert_int_equal(row_of(shares, "a")->uj[HEC_SHARES_ACTIVE], 60000);
    assert_int_equal(row_of(shares, "b")->uj[HEC_SHARES_ACTIVE], 20000);
    assert_int_equal(hec_shares_row(shares, 0)->uj[HEC_SHARES_UNATTRIBUTED], 20000); /* of a and c: who knows */
    instances[1].sm_permille = HEC_SHARES_UNKNOWN;
    assert_int_equal(hec_shares_add(shares, &interval), HEC_OK);
    assert_int_equal(hec_shares_row(shares, 0)->uj[HEC_SHARES_UNATTRIBUTED], 120000);
    for (int i = 0; i < 3; i++)
        instances[i].sm_permille = 0;
    assert_int_equal(hec_shares_add(shares, &interval), HEC_OK);
    assert_int_equal(row_of(shares, "c")->uj[HEC_SHARES_IDLE],
                     33333 + (row_of(shares, "c")->uj[HEC_SHARES_IDLE] > 33333));
    assert_int_equal(sum_of(shares), 300000);
}

static double bound_j(const struct hec_shares *of, const char *command) {
    return hec_share_error_bound_uj(&row_of(of, command)->error) * 1e-6;
}

/* Who is alone may be off by the floor's error, whoever waits beside him; two at once by the driver's looks and by what they draw. */
TEST(doubt_is_of_turns_figures_and_floor) {
    struct hec_tenant a = named("a"), b = named("b");
    struct hec_shares_holder both[] = {{&a, true, HEC_SHARES_WHOLE, 1000}, {&b, true, HEC_SHARES_WHOLE, 0}};
    play(10, 620, 1000, both, 2); /* no floor: as much as 150 W may be idle */
    assert_near(bound_j(shares, "a"), 1500, 1);
    both[0].sm_permille = 0;
    play(12, 120, 0, both, 2);
    both[0].sm_permille = 1000;
    play(100, 620, 1000, both, 2); /* 5 % of 120 W */
    assert_near(bound_j(shares, "a"), 1500 + 600, 1);
    assert_near(sqrt(row_of(shares, "a")->error.turns_uj2) + row_of(shares, "a")->error.figures_uj, 0, 1000);
    assert_near(bound_j(shares, "b"), 0, 1e-3);

    struct hec_share_error alone = row_of(shares, "a")->error;
    both[0].sm_permille = both[1].sm_permille = 500;
    play(500, 620, 1000, both, 2); /* 100 blocks of 2500 J at 500 W, each of 7.5 looks' worth */
    struct hec_share_error of_a = row_of(shares, "a")->error, of_b = row_of(shares, "b")->error;
    double p = (double)row_of(shares, "b")->uj[HEC_SHARES_ACTIVE] * 1e-6 / 250e3;
    assert_near(p, 0.5, 0.02);
    assert_near(sqrt(of_b.turns_uj2) * 1e-6, sqrt(100 * 0.25 / 6.5) * 2500, 30);
    assert_near(sqrt(of_a.turns_uj2 / of_b.turns_uj2), 1, 1e-6); /* what one has too much the other lacks */
    assert_near(of_a.figures_uj / of_b.figures_uj, 1, 1e-6);
    assert_in_range(of_b.figures_uj * 1e-6, 0.07 * 125e3, 0.2 * 125e3); /* a is known, b never ran alone */
    assert_near((of_a.floor_uj - alone.floor_uj) * 1e-6, 1500, 50);
}

/* One user's programs, many at once or one after the other under ever new names, leave rows for others. */
TEST(a_user_leaves_rows_for_others) {
    enum { PROGRAMS = HEC_SHARES_ROWS_MAX + HEC_SHARES_ROWS_MAX / 2 };
    static struct hec_tenant tenants[PROGRAMS];
    struct hec_shares_holder holders[PROGRAMS + 1];
    struct hec_tenant bob = {.user = "bob", .command = "train"};
    int64_t now_ns = 0;
    for (int at_once = 0; at_once < 2; at_once++) {
        struct hec_shares *fresh;
        assert_int_equal(hec_shares_create(&fresh), HEC_OK);
        for (int i = 0; i < PROGRAMS; i++) {
            char name[16];
            snprintf(name, sizeof name, "%d", i);
            tenants[i] = named(name);
            holders[i] = (struct hec_shares_holder){&tenants[i], true, HEC_SHARES_WHOLE, 10};
        }
        holders[PROGRAMS] = (struct hec_shares_holder){&bob, true, HEC_SHARES_WHOLE, 10};
        for (int i = 0; i < PROGRAMS; i++) {
            struct hec_shares_interval interval = {.end_ns = now_ns += SECOND,
                                                   .duration_ns = SECOND,
                                                   .energy_mj = 100,
                                                   .observed = true,
                                                   .busy_permille = 500,
                                                   .holders = at_once ? holders : &holders[i],
                                                   .holder_count = at_once ? PROGRAMS : 1};
            assert_int_equal(hec_shares_add(fresh, &interval), HEC_OK);
        }
        struct hec_shares_interval interval = {.end_ns = now_ns += SECOND,
                                               .duration_ns = SECOND,
                                               .energy_mj = 100,
                                               .observed = true,
                                               .busy_permille = 500,
                                               .holders = &holders[PROGRAMS],
                                               .holder_count = 1};
        assert_int_equal(hec_shares_add(fresh, &interval), HEC_OK);
        assert_non_null(row_of(fresh, "train"));
        assert_int_equal(sum_of(fresh), (PROGRAMS + 1) * 100 * 1000);
        hec_shares_free(fresh);
    }
}

struct seen {
    struct hec_tenant tenant;
    int64_t uj[HEC_SHARES_PART_COUNT];
    double bound_uj;
};

/* Tenants without end, more at a time than there is room for, anything as utilisation: no row that stays ever falls, and no
 * tenant has two rows. */
/* A job of many steps takes nobody's row: the first have theirs, the others share one. */
TEST(steps_of_a_job_are_bounded) {
    struct hec_tenant step = {.user = "ann", .job = "41"};
    for (int i = 0; i < 30; i++) {
        snprintf(step.step, sizeof step.step, "%d", i);
        play(5, 600, 1000, &(struct hec_shares_holder){&step, true, HEC_SHARES_WHOLE, 1000}, 1);
    }
    int64_t sum = 0, others = 0;
    size_t rows = 0;
    for (size_t i = 0; i < hec_shares_count(shares); i++) {
        const struct hec_shares_row *row = hec_shares_row(shares, i);
        if (strcmp(row->tenant.job, "41") != 0)
            continue;
        rows++;
        for (int part = 0; part < HEC_SHARES_PART_COUNT; part++) {
            sum += row->uj[part];
            others += row->tenant.step[0] ? 0 : row->uj[part];
        }
    }
    assert_int_equal(rows, 9);
    assert_int_equal(sum, INT64_C(30) * 5 * 600000000);
    assert_int_equal(others, INT64_C(22) * 5 * 600000000);
}

/* Of all rows of a job: what was counted, and what of it is shown. */
static size_t rows_of_job(const char *job, int64_t *counted_uj, int64_t *shown_uj) {
    size_t rows = 0;
    *counted_uj = *shown_uj = 0;
    for (size_t i = 0; i < hec_shares_count(shares); i++) {
        if (strcmp(hec_shares_row(shares, i)->tenant.job, job) != 0)
            continue;
        rows++;
        for (int part = 0; part < HEC_SHARES_PART_COUNT; part++) {
            *counted_uj += hec_shares_row(shares, i)->uj[part];
            *shown_uj += hec_shares_shown_uj(shares, i, (enum hec_shares_part)part);
        }
    }
    return rows;
}

static struct hec_tenant job_of(int number, const char *step, const char *task) {
    struct hec_tenant tenant = {.user = "ann"};
    snprintf(tenant.job, sizeof tenant.job, "%d", number);
    snprintf(tenant.step, sizeof tenant.step, "%s", step);
    snprintf(tenant.array_task, sizeof tenant.array_task, "%s", task);
    return tenant;
}

/* A job a second of one user for a quarter of an hour, given the device while the one before runs: each keeps its number until its last
 * value was shown for two scrapes of 15 s. */
TEST(short_jobs_keep_their_numbers) {
    enum { LAG = 17, JOBS = 900, SHOWN = LAG + LAG / 16 + 2 * 15 };
    hec_shares_lag(shares, LAG * SECOND);
    for (int i = 0; i < JOBS; i++) {
        struct hec_tenant step = job_of(i, "0", ""), given = job_of(i + 1, "", "");
        struct hec_shares_holder both[] = {{&step, true, HEC_SHARES_WHOLE, 1000}, {&given, false, HEC_SHARES_WHOLE, 0}};
        play(1, 600, 1000, both, 2);
        int64_t counted_uj, shown_uj;
        for (int ended = i > SHOWN ? i - SHOWN : 0; ended <= i; ended++) {
            char job[16];
            snprintf(job, sizeof job, "%d", ended);
            assert_in_range(rows_of_job(job, &counted_uj, &shown_uj), 1, 2);
            assert_int_equal(counted_uj, 600000000);
            if (i - ended > LAG + LAG / 16)
                assert_int_equal(shown_uj, counted_uj);
        }
    }
    for (int part = 0; part < HEC_SHARES_PART_COUNT; part++)
        assert_int_equal(row_of(shares, "(other)")->uj[part], 0);
    assert_true(row_of(shares, "(ended)")->uj[HEC_SHARES_ACTIVE] > 0);
}

/* The rows of a job stay together while one of them holds the device, however many came and went meanwhile: an epilog reads them all. */
TEST(a_job_keeps_its_rows_until_it_ends) {
    struct hec_tenant first = job_of(1, "0", ""), second = job_of(1, "1", "");
    int64_t counted_uj, shown_uj;
    hec_shares_lag(shares, 17 * SECOND);
    play(1, 600, 1000, &(struct hec_shares_holder){&first, true, HEC_SHARES_WHOLE, 1000}, 1);
    for (int i = 0; i < 400; i++) {
        struct hec_tenant other = named("");
        snprintf(other.command, sizeof other.command, "%d", i);
        struct hec_shares_holder both[] = {{&second, true, HEC_SHARES_WHOLE, 0},
                                           {&other, true, HEC_SHARES_WHOLE, 1000}};
        play(1, 600, 1000, both, 2);
        assert_int_equal(rows_of_job("1", &counted_uj, &shown_uj), 2);
        assert_int_equal(counted_uj, 600000000);
    }
    struct hec_shares *again; /* nor after a restart */
    assert_int_equal(hec_shares_create(&again), HEC_OK);
    hec_shares_lag(again, 17 * SECOND);
    for (size_t i = hec_shares_count(shares); i-- > 0;)
        assert_int_equal(hec_shares_restore(again, hec_shares_row(shares, i)), HEC_OK);
    hec_shares_free(shares);
    shares = again;
    for (int i = 400; i < 425; i++) {
        struct hec_tenant other = named("");
        snprintf(other.command, sizeof other.command, "%d", i);
        play(1, 600, 1000, &(struct hec_shares_holder){&other, true, HEC_SHARES_WHOLE, 1000}, 1);
        assert_int_equal(rows_of_job("1", &counted_uj, &shown_uj), 2);
    }
    for (int i = 425; i < 700; i++) {
        struct hec_tenant other = named("");
        snprintf(other.command, sizeof other.command, "%d", i);
        play(1, 600, 1000, &(struct hec_shares_holder){&other, true, HEC_SHARES_WHOLE, 1000}, 1);
    }
    assert_int_equal(rows_of_job("1", &counted_uj, &shown_uj), 0);
}

/* Where rows are scarce the steps of a job share the row that it has, with its task of an array. */
TEST(steps_share_a_row_where_rows_are_scarce) {
    enum { MANY = HEC_SHARES_ROWS_MAX / 2 };
    static struct hec_tenant others[MANY];
    struct hec_shares_holder holders[MANY + 2];
    for (int i = 0; i < MANY; i++) {
        others[i] = named("other");
        snprintf(others[i].user, sizeof others[i].user, "%d", i);
        holders[i] = (struct hec_shares_holder){&others[i], true, HEC_SHARES_WHOLE, 5};
    }
    struct hec_tenant given = job_of(7, "", "5_2"), steps[2] = {job_of(7, "0", ""), job_of(7, "1", "5_3")};
    holders[MANY] = (struct hec_shares_holder){&given, false, HEC_SHARES_WHOLE, 0};
    play(1, 600, 1000, holders, MANY + 1);
    holders[MANY] = (struct hec_shares_holder){&steps[0], true, HEC_SHARES_WHOLE, 300};
    holders[MANY + 1] = (struct hec_shares_holder){&steps[1], true, HEC_SHARES_WHOLE, 300};
    play(1, 600, 1000, holders, MANY + 2);
    int64_t counted_uj, shown_uj;
    assert_int_equal(rows_of_job("7", &counted_uj, &shown_uj), 1);
    for (size_t i = 0; i < hec_shares_count(shares); i++)
        if (hec_shares_row(shares, i)->tenant.job[0])
            assert_string_equal(hec_shares_row(shares, i)->tenant.array_task, "5_2");
    assert_true(counted_uj > 100000000);
}

/* What is shown of all rows is what was counted a lag ago, also where a row makes room for another. */
TEST(joules_are_shown_later) {
    enum { LAG = 16 };
    int64_t counted[600] = {0};
    hec_shares_lag(shares, LAG * SECOND);
    for (int i = 0; i < 599; i++) {
        struct hec_tenant tenant = named("");
        snprintf(tenant.command, sizeof tenant.command, "%d", i / 5);
        play(1, 600, 1000, &(struct hec_shares_holder){&tenant, true, HEC_SHARES_WHOLE, 1000}, 1);
        counted[i] = hec_shares_total_uj(shares);
        int64_t shown = 0;
        for (size_t row = 0; row < hec_shares_count(shares); row++)
            for (int part = 0; part < HEC_SHARES_PART_COUNT; part++)
                shown += hec_shares_shown_uj(shares, row, (enum hec_shares_part)part);
        assert_true(shown <= (i >= LAG ? counted[i - LAG] : 0) && shown >= (i > LAG ? counted[i - LAG - 1] : 0));
        const struct hec_shares_row *row = row_of(shares, tenant.command);
        if (row && i % 5 == 0) /* new: there, and 0 */
            assert_int_equal(hec_shares_shown_uj(shares, (size_t)(row - hec_shares_row(shares, 0)), HEC_SHARES_ACTIVE),
                             0);
    }
}

TEST(no_row_falls_and_no_joule_is_lost) {
    static struct seen before[HEC_SHARES_ROWS_MAX];
    size_t before_count = 0;
    int64_t now_ns = 0, given_mj = 0;
    static struct hec_tenant tenants[200];
    for (int step = 0; step < 2000; step++) {
        struct hec_shares_holder holders[200];
        size_t count = (size_t)(uniform() * (step % 500 < 30 ? 200 : 20));
        int first = step / 6;
        for (size_t i = 0; i < count; i++) {
            char name[16];
            int number = first + (int)(uniform() * (double)(count + 1));
            snprintf(name, sizeof name, "%d", number);
            tenants[i] = named(name);
            snprintf(tenants[i].user, sizeof tenants[i].user, "%d", number % 7);
            holders[i] =
                (struct hec_shares_holder){&tenants[i], uniform() < 0.9, uniform() < 0.8 ? -1 : (int)(uniform() * 12),
                                           uniform() < 0.8 ? (int)(uniform() * 1000) : HEC_SHARES_UNKNOWN};
        }
        struct hec_shares_interval interval = {.duration_ns = (int64_t)(uniform() * 30e9),
                                               .energy_mj = (int64_t)(uniform() * 7e5) - (step % 97 == 0) * 3000000,
                                               .observed = uniform() < 0.97,
                                               .busy_permille = uniform() < 0.3 ? 0 : (int)(uniform() * 1000),
                                               .holders = holders,
                                               .holder_count = count};
        interval.end_ns = now_ns += interval.duration_ns;
        if (hec_shares_add(shares, &interval) == HEC_OK)
            given_mj += interval.energy_mj;
        assert_int_equal(sum_of(shares), given_mj * 1000);
        assert_int_equal(hec_shares_total_uj(shares), given_mj * 1000);
        assert_true(hec_shares_count(shares) <= HEC_SHARES_ROWS_MAX);
        for (size_t i = 0; i < hec_shares_count(shares); i++) {
            const struct hec_shares_row *row = hec_shares_row(shares, i);
            for (size_t j = 0; j < i; j++)
                assert_false(hec_tenant_equal(&row->tenant, &hec_shares_row(shares, j)->tenant));
            for (size_t j = 0; j < before_count; j++)
                for (int part = 0; part < HEC_SHARES_PART_COUNT && hec_tenant_equal(&before[j].tenant, &row->tenant);
                     part++)
                    assert_true(row->uj[part] >= before[j].uj[part]);
            for (size_t j = 0; j < before_count; j++)
                if (hec_tenant_equal(&before[j].tenant, &row->tenant))
                    assert_true(hec_share_error_bound_uj(&row->error) >= before[j].bound_uj);
        }
        before_count = hec_shares_count(shares);
        for (size_t i = 0; i < before_count; i++) {
            before[i].tenant = hec_shares_row(shares, i)->tenant;
            memcpy(before[i].uj, hec_shares_row(shares, i)->uj, sizeof before[i].uj);
            before[i].bound_uj = hec_share_error_bound_uj(&hec_shares_row(shares, i)->error);
        }
    }
    assert_true(row_of(shares, "(other)")->uj[HEC_SHARES_ACTIVE] > 0);
    assert_true(row_of(shares, "(ended)")->uj[HEC_SHARES_ACTIVE] > 0);

    struct hec_shares *again;
    assert_int_equal(hec_shares_create(&again), HEC_OK);
    for (size_t i = 0; i < before_count; i++)
        assert_int_equal(hec_shares_restore(again, hec_shares_row(shares, i)), HEC_OK);
    hec_shares_restore_floor(again, hec_shares_floor(shares));
    assert_int_equal(hec_shares_count(again), before_count);
    assert_int_equal(sum_of(again), given_mj * 1000);
    assert_int_equal(hec_shares_floor(again).held_mw, hec_shares_floor(shares).held_mw);
    assert_near(bound_j(again, "(ended)"), bound_j(shares, "(ended)"), 1e-6);
    assert_true(bound_j(shares, "(ended)") > 0);
    struct hec_shares_row more = {.tenant = named("one more"), .uj = {7, 0, 0}, .error = hec_share_error_unknown()},
                          bad = {.uj = {5, -1, 0}}, odd = {.error = {.floor_uj = -1}};
    assert_int_equal(hec_shares_restore(again, &more), HEC_OK);
    assert_int_equal(hec_shares_restore(again, &bad), HEC_ERR_CORRUPT);
    assert_int_equal(hec_shares_restore(again, &odd), HEC_ERR_CORRUPT);
    assert_true(isnan(bound_j(again, "(ended)")));
    assert_int_equal(sum_of(again), given_mj * 1000 + 7);
    assert_int_equal(row_of(again, "(ended)")->uj[HEC_SHARES_ACTIVE],
                     row_of(shares, "(ended)")->uj[HEC_SHARES_ACTIVE] + 7);
    hec_shares_free(again);
}
