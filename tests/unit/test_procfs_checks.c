/* The doctor's rows for the host and for CPU energy, on fixtures and on this machine. */
#include "observe/collector.h"
#include "observe/procfs/usable.h"
#include "tests/unit/host_fixture.h"

static const struct hec_check *row(const struct hec_check_list *list, const char *name) {
    for (int i = 0; i < list->count; i++)
        if (strcmp(list->items[i].name, name) == 0)
            return &list->items[i];
    return NULL;
}

static int set_up(void **state) {
    *state = fixture_make();
    return 0;
}

static int tear_down(void **state) {
    fixture_remove(*state);
    return 0;
}

static void make_proc(const char *folder) {
    char path[300];
    fixture_file(folder, "proc/50/stat", "50 (hec) R 1 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 9 0 5 0\n");
    fixture_file(folder, "proc/50/task/50/children", "%s", "");
    fixture_file(folder, "proc/50/io", "rchar: 1\n");
    fixture_file(folder, "proc/50/mounts", "proc /proc proc rw,nosuid 0 0\n");
    fixture_file(folder, "proc/stat", "cpu  1 2 3 4 5 6 7 8\n");
    fixture_file(folder, "proc/meminfo", "MemAvailable: 5 kB\n");
    fixture_file(folder, "proc/1/cgroup", "0::/init.scope\n");
    snprintf(path, sizeof path, "%s/proc/self", folder);
    assert_int_equal(symlink("50", path), 0);
}

static void look(const char *folder, struct hec_check_list *list) {
    char proc[300];
    memset(list, 0, sizeof *list);
    snprintf(proc, sizeof proc, "%s/proc", folder);
    hec_collector_procfs.check(&(struct hec_observe_options){.proc_path = proc}, list);
}

TEST(a_whole_host) {
    const char *folder = *unit_state;
    struct hec_check_list list;
    unsetenv("KUBERNETES_SERVICE_HOST");
    make_proc(folder);
    look(folder, &list);
    assert_int_equal(list.count, 5);
    for (int i = 0; i < list.count; i++)
        assert_int_equal(list.items[i].status, HEC_CHECK_OK);
    assert_true(row(&list, "process tree")->cost[0]);
}

TEST(what_lacks_is_said) {
    const char *folder = *unit_state;
    struct hec_check_list list;
    make_proc(folder);
    fixture_delete(folder, "proc/50/io");
    fixture_delete(folder, "proc/50/task");
    fixture_file(folder, "proc/meminfo", "MemFree: 5 kB\n");
    fixture_file(folder, "proc/stat", "nothing\n");
    fixture_file(folder, "proc/1/cgroup", "0::/kubepods.slice/x\n");
    fixture_file(folder, "sys/fs/cgroup/cpu.max", "250000 100000\n");
    look(folder, &list);
    assert_int_equal(row(&list, "new processes")->status, HEC_CHECK_LIMITED);
    assert_int_equal(row(&list, "I/O of the tree")->status, HEC_CHECK_MISSING);
    assert_non_null(strstr(row(&list, "I/O of the tree")->remedy, "CONFIG_TASK_IO_ACCOUNTING"));
    assert_int_equal(row(&list, "memory")->status, HEC_CHECK_MISSING);
    assert_int_equal(row(&list, "CPU")->status, HEC_CHECK_MISSING);
    assert_non_null(strstr(row(&list, "container")->finding, "Kubernetes"));
    assert_non_null(strstr(row(&list, "CPU quota")->finding, "2.5 cores"));
    fixture_delete(folder, "proc");
    look(folder, &list);
    assert_int_equal(list.count, 1);
    assert_int_equal(list.items[0].status, HEC_CHECK_MISSING);
}

/* The least quota of the process's control group and of those above it. */
TEST(quotas_of_groups) {
    const char *folder = *unit_state;
    struct hec_check_list list;
    make_proc(folder);
    fixture_file(folder, "proc/50/cgroup", "0::/job/step\n");
    fixture_file(folder, "sys/fs/cgroup/job/cpu.max", "150000 100000\n");
    fixture_file(folder, "sys/fs/cgroup/job/step/cpu.max", "max 100000\n");
    look(folder, &list);
    assert_non_null(strstr(row(&list, "CPU quota")->finding, "1.5 cores"));
    fixture_file(folder, "sys/fs/cgroup/job/cpu.max", "max 100000\n");
    look(folder, &list);
    assert_null(row(&list, "CPU quota"));
    assert_true(hec_cores_usable() >= 1);
}

TEST(hidden_processes_are_said_but_not_to_root) {
    const char *folder = *unit_state;
    struct hec_check_list list;
    make_proc(folder);
    fixture_file(folder, "proc/50/mounts",
                 "sysfs /sys sysfs rw 0 0\nproc /proc proc rw,nosuid,hidepid=invisible 0 0\n");
    bool root = geteuid() == 0;
    if (root) {
        look(folder, &list);
        assert_null(row(&list, "other users' processes"));
        assert_int_equal(seteuid(65534), 0);
    }
    look(folder, &list);
    if (root)
        assert_int_equal(seteuid(0), 0);
    assert_non_null(strstr(row(&list, "other users' processes")->finding, "hidepid=invisible"));
}

TEST(this_machine_has_a_process_tree) {
    struct hec_check_list list = {0};
    struct hec_observe_options here = {0};
    hec_collector_procfs.check(&here, &list);
    assert_int_equal(row(&list, "process tree")->status, HEC_CHECK_OK);
    hec_collector_rapl.check(&here, &list);
    assert_string_equal(list.items[list.count - 1].area, "cpu energy");
}

TEST(rapl_rows) {
    const char *folder = *unit_state;
    struct hec_check_list list = {0};
    const struct hec_observe_options options = {.powercap_path = folder, .proc_path = folder};
    fixture_file(folder, "cpuinfo", "flags : fpu sse2 hypervisor lm\n");
    hec_collector_rapl.check(&options, &list);
    assert_non_null(strstr(row(&list, "package")->finding, "virtual machine"));
    assert_string_equal(row(&list, "package")->remedy, ""); /* nothing helps */
    fixture_file(folder, "cpuinfo", "flags : fpu sse2 lm\n");
    memset(&list, 0, sizeof list);
    hec_collector_rapl.check(&options, &list);
    assert_non_null(strstr(row(&list, "package")->remedy, "modprobe"));

    fixture_file(folder, "intel-rapl:0/name", "package-0\n");
    fixture_file(folder, "intel-rapl:0/energy_uj", "5\n");
    fixture_file(folder, "intel-rapl:0/max_energy_range_uj", "262143328850\n");
    fixture_file(folder, "intel-rapl:1/name", "psys\n");
    fixture_file(folder, "intel-rapl:1/energy_uj", "5\n");
    memset(&list, 0, sizeof list);
    hec_collector_rapl.check(&options, &list);
    assert_int_equal(row(&list, "package-0")->status, HEC_CHECK_OK);
    assert_non_null(strstr(row(&list, "package-0")->finding, "262 kJ"));
    assert_int_equal(row(&list, "dram (memory)")->status, HEC_CHECK_MISSING);
    assert_non_null(strstr(row(&list, "psys")->finding, "not recorded"));
}

EACH_TEST(set_up, tear_down)
