/* The doctor's rows for the host and for CPU energy, on fixtures and on this machine. */
#include "observe/collector.h"
#include "observe/procfs/usable.h"
#include "tests/unit/folder.h"

static const struct hec_check *row(const struct hec_check_list *list, const char *name) {
    for (int i = 0; i < list->count; i++)
        if (strcmp(list->items[i].name, name) == 0)
            return &list->items[i];
    return NULL;
}

static void make_proc(void) {
    folder_text("proc/50/stat", "50 (hec) R 1 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 9 0 5 0\n");
    folder_text("proc/50/task/50/children", "%s", "");
    folder_text("proc/50/io", "rchar: 1\n");
    folder_text("proc/50/mounts", "proc /proc proc rw,nosuid 0 0\n");
    folder_text("proc/stat", "cpu  1 2 3 4 5 6 7 8\n");
    folder_text("proc/meminfo", "MemAvailable: 5 kB\n");
    folder_text("proc/1/cgroup", "0::/init.scope\n");
    assert_int_equal(symlink("50", in_folder("proc/self")), 0);
}

static void look(struct hec_check_list *list) {
    memset(list, 0, sizeof *list);
    hec_collector_procfs.check(&(struct hec_observe_options){.proc_path = in_folder("proc")}, list);
}

TEST(a_whole_host) {
    struct hec_check_list list;
    unsetenv("KUBERNETES_SERVICE_HOST");
    make_proc();
    look(&list);
    assert_int_equal(list.count, 5);
    for (int i = 0; i < list.count; i++)
        assert_int_equal(list.items[i].status, HEC_CHECK_OK);
    assert_true(row(&list, "process tree")->cost[0]);
}

TEST(what_lacks_is_said) {
    struct hec_check_list list;
    make_proc();
    folder_delete("proc/50/io");
    folder_delete("proc/50/task");
    folder_text("proc/meminfo", "MemFree: 5 kB\n");
    folder_text("proc/stat", "nothing\n");
    folder_text("proc/1/cgroup", "0::/kubepods.slice/x\n");
    folder_text("sys/fs/cgroup/cpu.max", "250000 100000\n");
    look(&list);
    assert_int_equal(row(&list, "new processes")->status, HEC_CHECK_LIMITED);
    assert_int_equal(row(&list, "I/O of the tree")->status, HEC_CHECK_MISSING);
    assert_non_null(strstr(row(&list, "I/O of the tree")->remedy, "CONFIG_TASK_IO_ACCOUNTING"));
    assert_int_equal(row(&list, "memory")->status, HEC_CHECK_MISSING);
    assert_int_equal(row(&list, "CPU")->status, HEC_CHECK_MISSING);
    assert_non_null(strstr(row(&list, "container")->finding, "Kubernetes"));
    assert_non_null(strstr(row(&list, "CPU quota")->finding, "2.5 cores"));
    folder_delete("proc");
    look(&list);
    assert_int_equal(list.count, 1);
    assert_int_equal(list.items[0].status, HEC_CHECK_MISSING);
}

/* The least quota of the process's control group and of those above it. */
TEST(quotas_of_groups) {
    struct hec_check_list list;
    make_proc();
    folder_text("proc/50/cgroup", "0::/job/step\n");
    folder_text("sys/fs/cgroup/job/cpu.max", "150000 100000\n");
    folder_text("sys/fs/cgroup/job/step/cpu.max", "max 100000\n");
    look(&list);
    assert_non_null(strstr(row(&list, "CPU quota")->finding, "1.5 cores"));
    folder_text("sys/fs/cgroup/job/cpu.max", "max 100000\n");
    look(&list);
    assert_null(row(&list, "CPU quota"));
    assert_true(hec_cores_usable() >= 1);
}

TEST(hidden_processes_are_said_but_not_to_root) {
    struct hec_check_list list;
    make_proc();
    folder_text("proc/50/mounts", "sysfs /sys sysfs rw 0 0\nproc /proc proc rw,nosuid,hidepid=invisible 0 0\n");
    bool root = geteuid() == 0;
    if (root) {
        look(&list);
        assert_null(row(&list, "other users' processes"));
        assert_int_equal(seteuid(65534), 0);
    }
    look(&list);
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
    struct hec_check_list list = {0};
    const struct hec_observe_options options = {.powercap_path = folder, .proc_path = folder};
    folder_text("cpuinfo", "flags : fpu sse2 hypervisor lm\n");
    hec_collector_rapl.check(&options, &list);
    assert_non_null(strstr(row(&list, "package")->finding, "virtual machine"));
    assert_string_equal(row(&list, "package")->remedy, ""); /* nothing helps */
    folder_text("cpuinfo", "flags : fpu sse2 lm\n");
    memset(&list, 0, sizeof list);
    hec_collector_rapl.check(&options, &list);
    assert_non_null(strstr(row(&list, "package")->remedy, "modprobe"));

    folder_text("intel-rapl:0/name", "package-0\n");
    folder_text("intel-rapl:0/energy_uj", "5\n");
    folder_text("intel-rapl:0/max_energy_range_uj", "262143328850\n");
    folder_text("intel-rapl:1/name", "psys\n");
    folder_text("intel-rapl:1/energy_uj", "5\n");
    memset(&list, 0, sizeof list);
    hec_collector_rapl.check(&options, &list);
    assert_int_equal(row(&list, "package-0")->status, HEC_CHECK_OK);
    assert_non_null(strstr(row(&list, "package-0")->finding, "262 kJ"));
    assert_int_equal(row(&list, "dram (memory)")->status, HEC_CHECK_MISSING);
    assert_non_null(strstr(row(&list, "psys")->finding, "not recorded"));
}

EACH_TEST(folder_make, folder_remove)
