/* Clocks of several files are set by the collectives that they have in common. */
#include "tests/unit/import_fixture.h"

/* Collectives of a rank: ten ms apart, from the number `first` on, in a group; its clock is `ahead` us ahead. */
struct trace {
    int rank, first, count, ahead_us;
    const char *group, *members, *collective;
};

static size_t put_collectives(char *text, size_t size, const struct trace *t) {
    size_t length = 0;
    for (int i = t->first; i < t->first + t->count; i++)
        length += (size_t)snprintf(
            text + length, size - length,
            "%s{'ph':'X','cat':'kernel','name':'ncclDevKernel','pid':0,'tid':7,'ts':%d,'dur':100,'args':{'device':0,"
            "'stream':7,'Collective name':'%s','Process Group Name':'%s','Process Group Ranks':'%s','Seq':%d}}",
            length ? "," : "", 1000000 + i * 10000 + t->ahead_us, t->collective ? t->collective : "allreduce", t->group,
            t->members, i);
    return length;
}

static void write_trace(const char **path, int at, const struct trace *t, const struct trace *more) {
    static char events[65536], text[70000];
    char name[32];
    size_t length = put_collectives(events, sizeof events, t);
    if (more) {
        events[length++] = ',';
        put_collectives(events + length, sizeof events - length, more);
    }
    snprintf(name, sizeof name, "trace%d.json", at);
    snprintf(text, sizeof text, "{'distributedInfo':{'rank':%d},'traceEvents':[%s]}", t->rank, events);
    path[at] = strdup(import_write(name, text));
}

static void import_traces(const struct trace *list, int count) {
    const char *paths[8] = {NULL};
    for (int i = 0; i < count; i++)
        write_trace(paths, i, &list[i], NULL);
    assert_int_equal(import_files(paths, count), HEC_OK);
    for (int i = 0; i < count; i++)
        free((void *)paths[i]);
}

/* The first kernel of a rank begins so long after the origin. */
static int64_t begins_us(int rank) {
    for (int i = 0; i < kept.activities; i++)
        if (kept.activity[i].kind == HEC_ACTIVITY_KERNEL && kept.track[kept.activity[i].track - 1].rank == rank)
            return kept.activity[i].start_ns / 1000;
    fail();
    return -1;
}

TEST(test_a_trace_that_begins_late_is_set_by_the_numbers) {
    /* the next collective of the other clock is 1.5 ms away, the same one 7 ms */
    const struct trace traces[] = {{0, 0, 10, 0, "0", "[0, 1]", NULL}, {1, 4, 6, 7000, "0", "[0, 1]", NULL}};
    import_traces(traces, 2);
    assert_int_equal(begins_us(0), 0);
    assert_int_equal(begins_us(1), 40000);
    assert_int_equal(imported.stats.clocks, 1);
    assert_non_null(
        kept_event(HEC_EVENT_NOTE, "the clock of 1 file was set by its collectives, which end on all ranks at once"));
    assert_int_equal(imported.stats.end_ns, 90100000);
}

TEST(test_the_clock_is_that_of_the_lowest_rank) {
    const struct trace traces[] = {{1, 0, 10, 0, "0", "[0, 1]", NULL}, {0, 2, 8, 5000, "0", "[0, 1]", NULL}};
    import_traces(traces, 2);
    assert_int_equal(begins_us(1), 0);
    assert_int_equal(begins_us(0), 20000);
    assert_int_equal(imported.stats.origin_ns, 1005000000);
}

TEST(test_what_is_not_the_same_collective_sets_no_clock) {
    static const struct trace other[] = {
        {1, 0, 10, 7000, "1", "[0, 1]", NULL},        /* of another group */
        {1, 0, 10, 7000, "0", "[2, 3]", NULL},        /* that has the name by chance */
        {1, 20, 10, 7000, "0", "[0, 1]", NULL},       /* later ones */
        {1, 8, 10, 7000, "0", "[0, 1]", NULL},        /* too few in common */
        {1, 0, 10, 7000, "0", "[0, 1]", "broadcast"}, /* may end on one rank long before */
        {1, 0, 10, 7000, "0", "[0, 1]", "recv"},      /* counted by each rank for itself */
        {0, 0, 10, 7000, "0", "[0, 1]", NULL},        /* of the same rank */
    };
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++) {
        struct trace traces[] = {{0, 0, 10, 0, "0", "[0, 1]", NULL}, other[i]};
        traces[0].collective = other[i].collective;
        import_traces(traces, 2);
        assert_int_equal(imported.stats.clocks, 0);
        if (other[i].rank)
            assert_int_equal(begins_us(1), other[i].first * 10000 + 7000);
    }
}

TEST(test_clocks_that_differ_by_little_are_set_without_a_note) {
    const struct trace traces[] = {{0, 0, 10, 0, "0", "[0, 1]", NULL}, {1, 0, 10, 40, "0", "[0, 1]", NULL}};
    import_traces(traces, 2);
    assert_int_equal(begins_us(1), 0);
    assert_int_equal(imported.stats.clocks, 0);
}

TEST(test_a_rank_is_set_by_one_that_is_set) {
    /* rank 2 has nothing in common with rank 0, but with rank 1 */
    const char *paths[3];
    const struct trace of_both = {1, 0, 5, 3000, "b", "[1, 2]", NULL};
    write_trace(paths, 0, &(struct trace){0, 0, 5, 0, "a", "[0, 1]", NULL}, NULL);
    write_trace(paths, 1, &(struct trace){1, 0, 5, 3000, "a", "[0, 1]", NULL}, &of_both);
    write_trace(paths, 2, &(struct trace){2, 0, 5, 9000, "b", "[1, 2]", NULL}, NULL);
    assert_int_equal(import_files(paths, 3), HEC_OK);
    for (int rank = 0; rank < 3; rank++) {
        assert_int_equal(begins_us(rank), 0);
        free((void *)paths[rank]);
    }
    assert_int_equal(imported.stats.clocks, 2);
    assert_non_null(kept_event(HEC_EVENT_NOTE,
                               "the clocks of 2 files were set by their collectives, which end on all ranks at once"));
}
