/* The table of processes: who comes, who goes, and whose stacks are read. */
#include "unit.h"

#include "observe/processes.h"

static struct hec_process_table table;

static int begin(void **state) {
    (void)state;
    hec_process_table_init(&table);
    return 0;
}

static int end(void **state) {
    (void)state;
    hec_process_table_free(&table);
    return 0;
}
EACH_TEST(begin, end)

static void seen(int32_t pid, int64_t start_ns, int64_t end_ns) {
    hec_process_table_add(&table,
                          &(struct hec_process){.pid = pid, .parent = 1, .start_ns = start_ns, .end_ns = end_ns});
}

TEST(processes_come_and_go) {
    static struct hec_process_entry list[HEC_PROCESS_TABLE_MAX];
    uint64_t version = 0;
    assert_int_equal(hec_process_table_list(&table, &version, list), -1);
    seen(10, 5, -1);
    seen(11, 6, -1);
    assert_int_equal(hec_process_table_list(&table, &version, list), 2);
    seen(10, 5, -1); /* a newer record of it */
    assert_int_equal(hec_process_table_list(&table, &version, list), -1);
    seen(10, 4, 9); /* an earlier process of that number */
    assert_int_equal(hec_process_table_list(&table, &version, list), -1);
    seen(10, 5, 9);
    assert_int_equal(hec_process_table_list(&table, &version, list), 1);
    assert_int_equal(list[0].pid, 11);
    seen(11, 20, -1); /* the number was used again */
    assert_int_equal(hec_process_table_list(&table, &version, list), 1);
    assert_int_equal(list[0].start_ns, 20);
}

TEST(who_is_read_from_outside) {
    seen(10, 5, -1);
    assert_int_equal(hec_process_table_stacks(&table, 10), HEC_STACKS_UNKNOWN);
    hec_process_table_set_stacks(&table, 10, HEC_STACKS_OUTSIDE);
    hec_process_table_set_stacks(&table, 12, HEC_STACKS_INSIDE);
    assert_int_equal(hec_process_table_stacks(&table, 10), HEC_STACKS_OUTSIDE);
    assert_int_equal(hec_process_table_stacks(&table, 12), HEC_STACKS_UNKNOWN);
}

TEST(no_more_than_there_is_room_for) {
    static struct hec_process_entry list[HEC_PROCESS_TABLE_MAX];
    uint64_t version = 0;
    for (int i = 0; i < 2 * HEC_PROCESS_TABLE_MAX; i++)
        seen(100 + i, i, -1);
    assert_int_equal(hec_process_table_list(&table, &version, list), HEC_PROCESS_TABLE_MAX);
}
