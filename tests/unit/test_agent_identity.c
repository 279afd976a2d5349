/* Process -> pod, job or user: cgroup paths as runtimes make them, and a /proc of files. */
#include "agent/identity.h"
#include "agent/job_map.h"
#include "agent/pod_names.h"
#include "base/clock.h"
#include "base/error.h"
#include "tests/unit/folder.h"

#include <fcntl.h>

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define OTHER_ID "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
#define UID "1a2b3c4d-0001-4002-8003-a0b0c0d0e0f0"
#define UID_ "1a2b3c4d_0001_4002_8003_a0b0c0d0e0f0"
#define STATIC_UID "00112233445566778899aabbccddeeff"

static const struct {
    const char *text, *pod_uid, *container, *job, *step;
} paths[] = {
    /* Kubernetes: systemd and cgroupfs drivers; Docker, containerd, CRI-O; both versions */
    {"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_ ".slice/cri-containerd-" ID ".scope\n",
     UID, ID, ""},
    {"0::/kubepods.slice/kubepods-pod" UID_ ".slice/crio-" ID ".scope", UID, ID, ""},
    {"12:pids:/kubepods/besteffort/pod" UID "/" ID "\n11:cpu,cpuacct:/kubepods/besteffort/pod" UID "/" ID "\n", UID, ID,
     ""},
    {"1:name=systemd:/system.slice/containerd.service/kubepods-burstable-pod" UID_ ".slice:cri-containerd:" ID, UID, ID,
     ""},
    {"0::/kubepods/burstable/pod" STATIC_UID "/" ID, STATIC_UID, ID, ""},
    {"0::/docker/" OTHER_ID "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" UID_
     ".slice/cri-containerd-" ID ".scope",
     UID, ID, ""}, /* kind: Kubernetes in Docker */
    {"0::/system.slice/docker-" ID ".scope", "", ID, ""},
    {"0::/machine.slice/libpod-" ID ".scope/container", "", ID, ""},
    /* Slurm: versions 1 and 2, with several daemons a machine */
    {"9:devices:/slurm/uid_1000/job_42/step_0/task_0\n3:cpu:/user.slice\n", "", "", "42", "0"},
    {"9:devices:/slurm_node7/uid_0/job_7/step_batch", "", "", "7", "batch"},
    {"0::/system.slice/slurmstepd.scope/job_123/step_17/user/task_0", "", "", "123", "17"},
    {"0::/system.slice/node7_slurmstepd.scope/job_124/step_extern/user/task_special", "", "", "124", "extern"},
    {"0::/system.slice/slurmstepd.scope/job_123/user/step_1", "", "", "123", ""}, /* not the step that it looks like */
    {"0::/system.slice/slurmstepd.scope/job_123/step_1-A/x", "", "", "123", ""},
    {"0::/system.slice/slurmstepd.scope/job_123/step_0123456789abcdef/x", "", "", "123", ""},
    /* neither */
    {"0::/user.slice/user-1000.slice/session-2.scope", "", "", ""},
    {"0::/", "", "", ""},
    {"", "", "", ""},
    {":", "", "", ""},
    {"::", "", "", ""},
    /* what a user may make below his own */
    {"0::/user.slice/user-1000.slice/user@1000.service/slurmstepd.scope/job_1/x", "", "", ""},
    {"0::/user.slice/user-1000.slice/user@1000.service/kubepods-pod" UID_ ".slice/crio-" ID ".scope", "", "", ""},
    {"0::/system.slice/ann.service/slurmstepd.scope/job_1/x", "", "", ""}, /* a service that may make cgroups */
    {"0::/system.slice/slurmstepd.scope/job_1/step_0/user/x.slice/slurmstepd.scope/job_2", "", "", "1", "0"},
    {"9:devices:/slurm/uid_1/job_1/slurm/uid_2/job_2", "", "", "1"},
    {"0::/kubepods.slice/kubepods-pod" UID_ ".slice/crio-" ID ".scope/kubepods-pod" STATIC_UID ".slice/crio-" OTHER_ID
     ".scope",
     UID, ID, ""},
    {"0::/kubepods/pod" UID "/" ID "/" OTHER_ID, UID, ID, ""}, /* another's id would bring its names */
    {"0::/system.slice/docker-" ID ".scope/docker-" OTHER_ID ".scope", "", ID, ""},
    {"5:cpu:/slurm/uid_1/job_1\n4:name=x:/slurm/uid_1/job_2\n", "", "", "1"},
    /* near misses */
    {"0::/user.slic/slurmstepd.scope/job_1", "", "", ""},
    {"0::/a.slice/x_slurmstepd.scope/job_1", "", "", "1"},
    {"0::/a.slice/slurmstepd.scopes/job_1", "", "", ""},
    {"0::/a.slice/slurmstepd.scope/job_1x", "", "", ""},
    {"0::/a.slice/slurmstepd.scope/jobs1", "", "", ""},
    {"0::/a.slice/slurmstepd.scope/job_12345678901234567890", "", "", "12345678901234567890"},
    {"9:d:/slur/uid_1/job_5", "", "", ""},
    {"9:d:/slurm/uid_/job_5", "", "", ""},
    {"9:d:/slurm/uid_1/job_5/step_", "", "", "5", ""},
    {"9:d:/slurm/uid_1/job_5/stop_1", "", "", "5", ""},
    {"9:d:/slurm/uid_1/job_5/step_012345678901234", "", "", "5", "012345678901234"},
    {"0::kubepods/pod" UID "/" ID, "", "", ""},
    {"0::/kubepods/pod" UID "/x" ID, UID, "", ""},
    {"0::/kubepods/pod" UID, UID, "", ""},
    {"0::/kubepods/pod1a2b3c4d0001-4002-8003-a0b0c0d0e0f0x/x", "", "", ""},
    {"0::/kubepods/pod1A2B3C4D-0001-4002-8003-a0b0c0d0e0f0/x", "", "", ""},
    {"0::/system.slice/slurmstepd.scope/job_12a/step_0", "", "", ""},
    {"0::/system.slice/slurmstepd.scope/job_/step_0", "", "", ""},
    {"0::/system.slice/slurmstepd.scope/job_123456789012345678901/step_0", "", "", ""},
    {"0::/other/uid_1/job_5", "", "", ""},
    {"0::/job_5", "", "", ""},
    {"0::/kubepods/tripod" UID "/x", "", "", ""},
    {"0::/kubepods/pod" UID "0/x", "", "", ""},
    {"0::/kubepods/pod1a2b3c4d-0001-4002-8003-a0b0c0d0e0g0/x", "", "", ""},
    {"0::/docker/" ID "0", "", "", ""},
};

TEST(cgroups_say_pod_container_and_job) {
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        struct hec_cgroup got;
        hec_cgroup_parse(paths[i].text, &got);
        if (strcmp(got.pod_uid, paths[i].pod_uid) != 0 || strcmp(got.container, paths[i].container) != 0 ||
            strcmp(got.job, paths[i].job) != 0 || strcmp(got.step, paths[i].step ? paths[i].step : "") != 0)
            fail_msg("%s: pod '%s' container '%s' job '%s' step '%s'", paths[i].text, got.pod_uid, got.container,
                     got.job, got.step);
    }
}

static struct hec_identity *identity;

/* What stands for the API server's names: one pod has one. */
static char names_of_server;
bool hec_pod_names_find(struct hec_pod_names *names, const char *uid, struct hec_tenant *out) {
    if (!names)
        return false;
    assert_ptr_equal(names, &names_of_server);
    if (strcmp(uid, UID) != 0)
        return false;
    strcpy(out->pod_namespace, "api");
    strcpy(out->pod, "named-0");
    return true;
}

/* A process; arguments and environment hold their own NULs. */
static void put_process(int pid, int start, const char *cgroup, const char *arguments, size_t arguments_length,
                        const char *environment, size_t environment_length) {
    char path[64];
    snprintf(path, sizeof path, "%d/stat", pid);
    folder_text(path, "%d (wor) ker) S 1 1 1 0 -1 0 0 0 0 0 1 2 0 0 20 0 1 0 %d 1000 100 0 0\n", pid, start);
    snprintf(path, sizeof path, "%d/fd", pid);
    mkdir(in_folder(path), 0700);
    snprintf(path, sizeof path, "%d/cgroup", pid);
    folder_text(path, "%s", cgroup);
    snprintf(path, sizeof path, "%d/status", pid);
    folder_text(path, "Name:\tworker\nUmask:\t0022\nUid:\t1234\t1234\t1234\t1234\n");
    snprintf(path, sizeof path, "%d/cmdline", pid);
    folder_write(path, arguments, arguments_length);
    snprintf(path, sizeof path, "%d/environ", pid);
    folder_write(path, environment, environment_length);
}
#define PUT(pid, start, cgroup, arguments, environment)                                                                \
    put_process(pid, start, cgroup, arguments, sizeof arguments - 1, environment, sizeof environment - 1)

/* Instead of what was there before. */
static void begin(const char *device_prefix, bool processes) {
    hec_identity_close(identity);
    static char passwd[64], logs[64]; /* they are read later */
    snprintf(passwd, sizeof passwd, "%s/passwd", folder);
    snprintf(logs, sizeof logs, "%s/logs", folder);
    struct hec_identity_options options = {.proc_path = folder,
                                           .passwd_path = passwd,
                                           .containers_path = logs,
                                           .device_prefix = device_prefix,
                                           .processes = processes};
    assert_int_equal(hec_identity_open(&options, &identity), HEC_OK);
}

static int set_up(void **state) {
    int err = folder_make(state) || mkdir(in_folder("logs"), 0700);
    folder_text("passwd", "root:x:0:0::/:/bin/sh\nann:x:1234:1::/:/bin/sh\n");
    begin(NULL, false);
    return err;
}

static int tear_down(void **state) {
    hec_identity_close(identity);
    identity = NULL;
    return folder_remove(state);
}

static struct hec_tenant of(int pid, const struct hec_tenant *holder, int64_t now_ns) {
    struct hec_tenant tenant;
    memset(&tenant, 'x', sizeof tenant);
    hec_identity_of(identity, pid, &holder, holder != NULL, now_ns, &tenant);
    return tenant;
}

#define USERS_CGROUP "0::/user.slice/user-1234.slice/session-2.scope\n"

TEST_WITH(processes_are_known_by_user_and_command, set_up, tear_down) {
    PUT(10, 1, USERS_CGROUP, "/opt/bin/solver\0--token=secret\0", "A=b\0");
    PUT(11, 1, USERS_CGROUP, "/usr/bin/python3.11\0-u\0/home/ann/train.py\0--password\0secret\0", "");
    PUT(12, 1, USERS_CGROUP, "python3\0-m\0torch.distributed.run\0x\0", "");
    PUT(13, 1, USERS_CGROUP, "python3\0-c\0import secret\0", "");
    PUT(14, 1, USERS_CGROUP, "", "");
    PUT(15, 1, "0::/system.slice/docker-" ID ".scope\n", "a\0", "");
    PUT(16, 1, USERS_CGROUP, "python3\0\xff\xfe\x1b[31m\"\\\n a name that is longer than a label may be\0", "");
    PUT(17, 1, USERS_CGROUP, "python3\0-m\0", "");
    PUT(18, 1, USERS_CGROUP, "python3", ""); /* cut */
    assert_string_equal(of(10, NULL, 0).command, "wor) ker");
    assert_string_equal(of(10, NULL, 0).user, "ann");
    assert_string_equal(of(11, NULL, 0).command, "train.py");
    assert_string_equal(of(12, NULL, 0).command, "torch.distributed.run x");
    assert_string_equal(of(13, NULL, 0).command, "wor) ker");
    assert_string_equal(of(14, NULL, 0).command, "wor) ker");
    assert_string_equal(of(15, NULL, 0).container, "0123456789ab");
    assert_string_equal(of(15, NULL, 0).user, "ann");
    assert_string_equal(of(16, NULL, 0).command, "???[31m\"\\? a name that is longer than a label may be");
    assert_string_equal(of(17, NULL, 0).command, "wor) ker");
    assert_string_equal(of(18, NULL, 0).command, "wor) ker");
    static const int nobodys[] = {99, 0, -1};
    for (int i = 0; i < 3; i++) {
        struct hec_tenant none = of(nobodys[i], NULL, 0);
        assert_string_equal(none.user, "(unknown)");
        assert_string_equal(none.command, "");
    }
}

static const struct {
    const char *arguments;
    size_t length;
    const char *shown;
} commands[] = {
#define COMMAND(arguments, shown)                                                                                      \
    { arguments, sizeof arguments - 1, shown }
    COMMAND("python\0train.py\0--lr\0"
            "3\0",
            "train.py --lr 3"),
    COMMAND("python\0/a/b/train.py\0--data\0/scratch/imagenet\0--epochs=90\0", "train.py --data imagenet --epochs=90"),
    COMMAND("python3\0-m\0vllm.entrypoints\0--api-key\0sk-verysecret\0--port\0"
            "80\0",
            "vllm.entrypoints --port 80"),
    COMMAND("python3\0serve.py\0https://me:pass@host/x\0a sentence of words\0ok\0", "serve.py ok"),
    COMMAND("mysql\0-u\0root\0-pgeheim\0db\0", "wor) ker -u root db"),
    COMMAND("sshpass\0-p\0geheim\0ssh\0node\0", "wor) ker -p ssh node"),
    COMMAND("python3\0-u\0train.py\0-p\0geheim\0-b\0"
            "256\0",
            "train.py -p -b 256"),
    COMMAND("python3\0train.py\0--passcode\0geheim\0--layers\0"
            "4\0",
            "train.py --layers 4"),
    COMMAND("python3\0x.py\0--token=abc\0--prompt\0what is a GPU?\0", "x.py --prompt"),
    COMMAND("./hec\0sim\0data-starved\0--seconds\0"
            "300\0",
            "wor) ker sim data-starved --seconds 300"),
    COMMAND("python3\0x.py\0--max-tokens\0"
            "512\0--hf-token\0short\0",
            "x.py --max-tokens 512"),
    COMMAND("python3\0x.py\0a-word-that-is-longer-than-people-would-read\0-v\0", "x.py -v"),
};

/* Runs are told apart by their options; what may be a secret is never shown. */
TEST_WITH(a_command_says_what_tells_it_apart, set_up, tear_down) {
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        int pid = 100 + (int)i;
        put_process(pid, 1, USERS_CGROUP, commands[i].arguments, commands[i].length, "", 0);
        assert_string_equal(of(pid, NULL, 0).command, commands[i].shown);
    }
}

/* A process of its parent's that says nothing of its own. */
static void put_child(int pid, int parent, int uid, const char *arguments, size_t length) {
    char path[64];
    put_process(pid, 1, USERS_CGROUP, arguments, length, "", 0);
    snprintf(path, sizeof path, "%d/stat", pid);
    folder_text(path, "%d (python3) S %d 1 1 0 -1 0 0 0 0 0 1 2 0 0 20 0 1 0 1 1000 100 0 0\n", pid, parent);
    snprintf(path, sizeof path, "%d/status", pid);
    folder_text(path, "Name:\tpython3\nUid:\t%d\t%d\t%d\t%d\n", uid, uid, uid, uid);
}
#define CHILD(pid, parent, uid, arguments) put_child(pid, parent, uid, arguments, sizeof arguments - 1)
#define SPAWNED                                                                                                        \
    "python3\0-c\0from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5)\0--multiprocessing-fork\0"

TEST_WITH(workers_are_of_who_started_them, set_up, tear_down) {
    CHILD(200, 1, 1234,
          "python3\0train.py\0--lr\0"
          "3\0");
    CHILD(201, 200, 1234, SPAWNED);
    CHILD(202, 201, 1234, SPAWNED);
    CHILD(203, 200, 1234, "VLLM::EngineCore\0");
    CHILD(204, 200, 99, SPAWNED);                /* another user's: not his to name */
    CHILD(205, 200, 1234, "python3\0eval.py\0"); /* says what it is */
    CHILD(206, 206, 1234, SPAWNED);              /* its own parent: no end */
    for (int pid = 200; pid <= 203; pid++)
        assert_string_equal(of(pid, NULL, 0).command, "train.py --lr 3");
    assert_string_equal(of(204, NULL, 0).command, "python3");
    assert_string_equal(of(205, NULL, 0).command, "eval.py");
    assert_string_equal(of(206, NULL, 0).command, "python3");
}

TEST_WITH(jobs_are_known_by_cgroup_else_environment, set_up, tear_down) {
    PUT(21, 1, USERS_CGROUP, "a\0", "PATH=/bin\0XSLURM_JOB_ID=5\0SLURM_JOB_ID=78\0");
    PUT(22, 1, USERS_CGROUP, "a\0", "SLURM_JOB_ID=78\"}\0");
    PUT(23, 1, USERS_CGROUP, "a\0", "SLURM_JOB_ID=123456789012345678901\0");
    PUT(24, 1, "0::/kubepods.slice/kubepods-pod" UID_ ".slice/crio-" ID ".scope\n", "a\0", "SLURM_JOB_ID=78\0");
    assert_string_equal(of(21, NULL, 0).job, "78");
    assert_true(of(21, NULL, 0).claimed); /* of its user alone */
    assert_string_equal(of(22, NULL, 0).job, "");
    assert_string_equal(of(23, NULL, 0).job, "");
    assert_string_equal(of(24, NULL, 0).job, "");
    PUT(20, 1, "0::/system.slice/slurmstepd.scope/job_77/step_0/user/task_0\n", "a\0",
        "SLURM_JOB_ID=1\0SLURM_ARRAY_JOB_ID=1\0SLURM_ARRAY_TASK_ID=5\0");
    struct hec_tenant job = of(20, NULL, 0);
    assert_string_equal(job.job, "77");
    assert_string_equal(job.user, "ann");
    assert_string_equal(job.command, "");
    assert_string_equal(job.step, "0");
    assert_string_equal(job.array_task, ""); /* variables of another job */
    assert_false(job.claimed);
    PUT(25, 1, "0::/system.slice/slurmstepd.scope/job_78/step_batch\n", "a\0",
        "SLURM_ARRAY_TASK_ID=5\0SLURM_JOB_ID=78\0SLURM_STEP_ID=9\0SLURM_ARRAY_JOB_ID=70\0");
    assert_string_equal(of(25, NULL, 0).array_task, "70_5");
    assert_string_equal(of(25, NULL, 0).step, "batch"); /* the kernel's word */
    /* of another user, whose variables cannot be read: by the map of jobs, also after the epilog has taken the job out of it */
    static struct hec_job_map map = {
        .count = 2, .rows = {{.holder = {.job = "40"}}, {.holder = {.job = "79", .array_task = "40_7"}}}};
    PUT(26, 1, "0::/system.slice/slurmstepd.scope/job_79/step_0\n", "a\0", "A=b\0");
    hec_identity_map(identity, &map);
    assert_string_equal(of(26, NULL, 0).array_task, "40_7");
    assert_string_equal(of(25, NULL, 0).array_task, "70_5");
    assert_string_equal(of(20, NULL, 0).array_task, "");
    map.count = 0;
    assert_string_equal(of(26, NULL, HEC_NS_PER_S / 2).array_task, "40_7");
    /* jobs have cgroups here: from now on a variable joins none, also where it was believed before */
    assert_string_equal(of(21, NULL, HEC_NS_PER_S).job, "");
    assert_string_equal(of(21, NULL, HEC_NS_PER_S).user, "ann");
    assert_string_equal(of(20, NULL, HEC_NS_PER_S).job, "77");
}

TEST_WITH(pods_are_known_by_their_logs_else_by_who_holds_the_device, set_up, tear_down) {
    static const char pod[] = "0::/kubepods.slice/kubepods-pod" UID_ ".slice/crio-" ID ".scope\n";
    PUT(30, 1, pod, "a\0", "SLURM_JOB_ID=1\0");
    PUT(31, 1, "0::/kubepods.slice/kubepods-pod" UID_ ".slice/crio-" OTHER_ID ".scope\n", "a\0", "");
    folder_text("logs/train-0_ml_main-" ID ".log", "%s", "");
    folder_text("logs/Bad\"name_ml_main-" OTHER_ID ".log", "%s", "");
    folder_text("logs/short.log", "%s", "");
    struct hec_tenant holder = {.pod_namespace = "ml", .pod = "held", .container = "c"};
    struct hec_tenant known = of(30, &holder, 0);
    assert_string_equal(known.pod, "train-0");
    assert_string_equal(known.pod_namespace, "ml");
    assert_string_equal(known.container, "main");
    assert_string_equal(known.user, "");
    assert_string_equal(known.job, "");
    assert_true(
        hec_tenant_equal(&holder, &(struct hec_tenant){.pod_namespace = "ml", .pod = "held", .container = "c"}));
    struct hec_tenant unnamed = of(31, NULL, 0), held = of(31, &holder, 0), away = of(99, &holder, 0);
    assert_true(hec_tenant_equal(&held, &holder));
    assert_true(hec_tenant_equal(&away, &holder));
    assert_string_equal(unnamed.pod, UID);
    assert_string_equal(unnamed.pod_namespace, "");
}

static struct hec_tenant one_of(int pid, const struct hec_tenant *a, const struct hec_tenant *b) {
    const struct hec_tenant *holders[] = {a, b};
    struct hec_tenant tenant;
    hec_identity_of(identity, pid, holders, 2, 0, &tenant);
    return tenant;
}

/* Without the links of the kubelet: by what it mounted, which names the container, among those that hold the device. */
TEST_WITH(pods_that_share_a_device_are_told_apart_by_their_containers, set_up, tear_down) {
    static const char pod[] = "0::/kubepods.slice/kubepods-pod" UID_ ".slice/crio-" ID ".scope\n";
    struct hec_tenant train = {.pod_namespace = "ml", .pod = "train-0", .container = "train"};
    struct hec_tenant serve = {.pod_namespace = "ml", .pod = "serve-0", .container = "serve"};
    for (int pid = 60; pid < 63; pid++)
        PUT(pid, 1, pod, "a\0", "");
    static const char mount[] =
        "700 650 8:1 /var/lib/kubelet/pods/%s/containers/%s/0a1b /dev/termination-log rw - ext4 /dev/sda1 rw\n";
    folder_text("60/mountinfo", mount, UID, "serve");
    folder_text("61/mountinfo", mount, UID, "sidecar");
    assert_true(hec_tenant_equal(&(struct hec_tenant[1]){one_of(60, &train, &serve)}[0], &serve));
    assert_string_equal(one_of(61, &train, &serve).pod, UID); /* it is neither's */
    assert_string_equal(one_of(61, &train, &serve).container, "sidecar");
    assert_string_equal(of(61, &train, 0).pod, UID);          /* nor that of the only one */
    assert_string_equal(one_of(62, &train, &serve).pod, UID); /* it may be either's */
    /* one that has no device, such as what reports for the job, is of the pod of the others */
    assert_string_equal(of(62, NULL, 0).pod, "serve-0");
    assert_string_equal(of(62, NULL, 0).pod_namespace, "ml");
}

/* Between the two programs of an exec there is no environment, and after it another one. */
TEST_WITH(who_execs_is_read_again, set_up, tear_down) {
    static const int64_t half = HEC_NS_PER_S / 2;
    PUT(70, 1, USERS_CGROUP, "", "");
    assert_string_equal(of(70, NULL, 0).job, "");
    PUT(70, 1, USERS_CGROUP, "python3\0train.py\0", "SLURM_JOB_ID=30\0SLURM_STEP_ID=2\0");
    assert_string_equal(of(70, NULL, half).job, "30");
    assert_string_equal(of(70, NULL, half).step, "2");
    PUT(70, 1, USERS_CGROUP, "", ""); /* the next exec */
    assert_string_equal(of(70, NULL, 4 * half).job, "30");
    PUT(70, 1, USERS_CGROUP, "other\0", "SLURM_JOB_ID=31\0");
    assert_string_equal(of(70, NULL, 5 * half).job, "31");
    PUT(70, 1, USERS_CGROUP, "other\0", "SLURM_JOB_ID=32\0");
    folder_text("70/stat", "70 (python3) S 1 1 1 0 -1 0 0 0 0 0 1 2 0 0 20 0 1 0 1 1000 100 0 0\n");
    assert_string_equal(of(70, NULL, 5 * half).job, "32"); /* its name is another one */
}

TEST_WITH(each_process_is_told_apart_where_that_is_asked_for, set_up, tear_down) {
    PUT(40, 1, USERS_CGROUP, "/usr/bin/python3\0train.py\0--name\0\x1b[31mred\n\0", "SLURM_JOB_ID=5\0");
    PUT(41, 1, "0::/kubepods.slice/kubepods-pod" UID_ ".slice/crio-" ID ".scope\n", "", "");
    struct hec_tenant holder = {.pod_namespace = "ml", .pod = "held", .container = "c"};
    assert_int_equal(of(40, NULL, 0).pid, 0);
    assert_string_equal(hec_identity_line(identity, 40), "");
    begin(NULL, true);
    struct hec_tenant job = of(40, NULL, 0), pod = of(41, &holder, 0), gone = of(42, NULL, 0);
    assert_int_equal(job.pid, 40);
    assert_string_equal(job.job, "5");
    assert_string_equal(job.command, "train.py --name");
    assert_string_equal(job.user, "ann");
    assert_string_equal(hec_identity_line(identity, 40), "/usr/bin/python3 train.py --name ?[31mred?");
    assert_string_equal(pod.pod, "held");
    assert_string_equal(pod.user, "ann");
    assert_string_equal(hec_identity_line(identity, 41), "wor) ker");
    assert_int_equal(gone.pid, 42);
    assert_string_equal(gone.user, "(unknown)");
    assert_string_equal(hec_identity_line(identity, 42), "");
    assert_false(hec_tenant_equal(&pod, &gone));
}

TEST_WITH(nothing_stays_open, set_up, tear_down) {
    int before = open_files();
    PUT(40, 1, USERS_CGROUP, "a\0", "");
    for (int i = 0; i < 5; i++) {
        begin(i % 2 ? "nvidia" : NULL, false);
        of(40, NULL, 0);
    }
    assert_int_equal(open_files(), before);
    struct hec_identity *none = NULL;
    assert_int_equal(hec_identity_open(&(struct hec_identity_options){.proc_path = "/nowhere"}, &none), HEC_ERR_IO);
    assert_null(none);
    assert_int_equal(open_files(), before);
}

TEST_WITH(a_pid_that_is_used_again_is_somebody_else, set_up, tear_down) {
    PUT(40, 1, "0::/system.slice/slurmstepd.scope/job_1/step_0\n", "a\0", "A=b\0");
    assert_string_equal(of(40, NULL, 0).job, "1");
    PUT(40, 1, "0::/system.slice/slurmstepd.scope/job_2/step_0\n", "a\0", "A=b\0");
    assert_string_equal(of(40, NULL, HEC_NS_PER_S / 2).job, "1");  /* kept: the same process */
    assert_string_equal(of(40, NULL, 61 * HEC_NS_PER_S).job, "2"); /* moved meanwhile */
    PUT(40, 2, "0::/system.slice/slurmstepd.scope/job_3/step_0\n", "a\0", "A=b\0");
    assert_string_equal(of(40, NULL, 62 * HEC_NS_PER_S).job, "3"); /* another start time */
    folder_delete("40");
    assert_string_equal(of(40, NULL, 63 * HEC_NS_PER_S).job, "3"); /* it has ended, and was seen before */
    assert_string_equal(of(40, NULL, 190 * HEC_NS_PER_S).user, "(unknown)");
    PUT(40, 2, "0::/system.slice/slurmstepd.scope/job_3/step_0\n", "a\0", "A=b\0");
    PUT(40 + 256, 2, "0::/system.slice/slurmstepd.scope/job_4/step_0\n", "a\0", "A=b\0");
    assert_string_equal(of(40 + 256, NULL, 62 * HEC_NS_PER_S).job, "4"); /* the same place in the table */
    assert_string_equal(of(40, NULL, 62 * HEC_NS_PER_S).job, "3");
}

TEST_WITH(in_another_pid_namespace_only_who_has_the_device_open_is_believed, set_up, tear_down) {
    begin("/dev/nvidia", false);
    PUT(50, 1, USERS_CGROUP, "a\0", "");
    PUT(51, 1, USERS_CGROUP, "a\0", "");
    assert_int_equal(symlink("/dev/nvidia0", in_folder("51/fd/3")), 0);
    assert_string_equal(of(50, NULL, 0).user, "(unknown)");
    assert_string_equal(of(51, NULL, 0).user, "ann");
    hec_identity_trust(identity);
    assert_string_equal(of(50, NULL, 0).user, "ann");
    mkdir(in_folder("self"), 0700);
    mkdir(in_folder("self/ns"), 0700);
    const char *path = in_folder("self/ns/pid");
    assert_int_equal(symlink("pid:[4026531836]", path), 0);
    assert_null(hec_identity_proof(folder));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("pid:[4026532000]", path), 0);
    assert_string_equal(hec_identity_proof(folder), "/dev/nvidia");
}

TEST_WITH(this_process_is_known, set_up, tear_down) {
    struct hec_identity_options options = {0};
    hec_identity_close(identity); /* of made-up files */
    assert_int_equal(hec_identity_open(&options, &identity), HEC_OK);
    struct hec_tenant tenant = of(getpid(), NULL, 0);
    assert_true(tenant.user[0] || tenant.pod[0]);
    assert_string_not_equal(tenant.user, "(unknown)");
}

/* What the API server says goes before who holds the device, and after the kubelet's links; the container is by what was mounted. */
TEST_WITH(pods_are_named_by_the_server, set_up, tear_down) {
    static const char pod[] = "0::/kubepods.slice/kubepods-pod" UID_ ".slice/crio-" ID ".scope\n";
    struct hec_tenant holder = {.pod_namespace = "ml", .pod = "held", .container = "c"};
    PUT(30, 1, pod, "a\0", "");
    PUT(31, 1, "0::/kubepods/pod" STATIC_UID "/" OTHER_ID "\n", "a\0", "");
    PUT(32, 1, pod, "a\0", "");
    hec_identity_ask(identity, (struct hec_pod_names *)&names_of_server);
    struct hec_tenant named = of(30, &holder, 0), other = of(31, &holder, 0);
    assert_string_equal(named.pod_namespace, "api");
    assert_string_equal(named.pod, "named-0");
    assert_string_equal(named.container, "0123456789ab");
    assert_string_equal(named.command, "");
    assert_string_equal(other.pod, "held");
    folder_text("32/mountinfo",
                "7 6 8:1 /var/lib/kubelet/pods/%s/containers/main/0a1b /dev/termination-log rw - ext4 /dev/sda1 rw\n",
                UID);
    assert_string_equal(of(32, NULL, 0).container, "main");
    assert_string_equal(of(32, NULL, 0).pod, "named-0");
    folder_text("logs/linked_ml_first-" ID ".log", "%s", "");
    assert_string_equal(of(30, &holder, 100 * HEC_NS_PER_S).pod, "linked");
}

/* POD_NAMESPACE_CONTAINER-ID.log, of names of Kubernetes. */
TEST_WITH(links_of_the_kubelet, set_up, tear_down) {
    static const struct {
        const char *name;
        bool good;
    } row[] = {{"a_ns_c-" ID ".log", true},
               {"a.b-1_ns-2_c-d-" ID ".log", true},
               {"_ns_c-" ID ".log", false},
               {"a__c-" ID ".log", false},
               {"a_ns_-" ID ".log", false},
               {"a_ns_c" ID ".log", false},
               {"a_ns_c-" ID ".txt", false},
               {"a_ns_c-" OTHER_ID ".log", false},
               {"a_nsc-" ID ".log", false},
               {"A_ns_c-" ID ".log", false},
               {"a_ns_c-" ID "x.log", false},
               {"a_n s_c-" ID ".log", false},
               {"a_ns_c_d-" ID ".log", false},
               {"-" ID ".log", false},
               {ID ".log", false}};
    PUT(30, 1, "0::/kubepods.slice/kubepods-pod" UID_ ".slice/crio-" ID ".scope\n", "a\0", "");
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        char path[256];
        snprintf(path, sizeof path, "logs/%s", row[i].name);
        folder_text(path, "%s", "");
        begin(NULL, false);
        struct hec_tenant found = of(30, NULL, 0);
        if ((found.pod_namespace[0] != '\0') != row[i].good)
            fail_msg("%s: %s", row[i].name, found.pod);
        unlink(in_folder(path));
    }
    folder_text("logs/a.b-1_ns-2_c-d-" ID ".log", "%s", "");
    begin(NULL, false);
    struct hec_tenant found = of(30, NULL, 0);
    assert_string_equal(found.pod, "a.b-1");
    assert_string_equal(found.pod_namespace, "ns-2");
    assert_string_equal(found.container, "c-d");
}

/* What was found is kept a second, then twice as long each time, up to a minute. */
TEST_WITH(how_long_it_is_kept, set_up, tear_down) {
    static const int keeps_s[] = {1, 2, 4, 8, 16, 32, 60, 60};
    int64_t found_ns = 5 * HEC_NS_PER_S;
    char cgroup[128], job[16];
    for (size_t i = 0; i < sizeof keeps_s / sizeof keeps_s[0]; i++) {
        snprintf(cgroup, sizeof cgroup, "0::/system.slice/slurmstepd.scope/job_%d/step_0\n", 10 + (int)i);
        put_process(40, 1, cgroup, "a", 2, "A=b", 4);
        snprintf(job, sizeof job, "%d", 10 + (int)i);
        assert_string_equal(of(40, NULL, found_ns).job, job);
        put_process(40, 1, "0::/system.slice/slurmstepd.scope/job_9/step_0\n", "a", 2, "A=b", 4);
        assert_string_equal(of(40, NULL, found_ns + keeps_s[i] * HEC_NS_PER_S - 1).job, job);
        found_ns += keeps_s[i] * HEC_NS_PER_S;
    }
    folder_delete("40"); /* of one that has ended two minutes, from when it was found */
    int64_t last_ns = found_ns - 60 * HEC_NS_PER_S;
    assert_string_equal(of(40, NULL, last_ns + 120 * HEC_NS_PER_S - 1).job, "17");
    assert_string_equal(of(40, NULL, last_ns + 120 * HEC_NS_PER_S).user, "(unknown)");
}

TEST_WITH(of_many_parents_eight_are_asked, set_up, tear_down) {
    for (int workers = 8; workers <= 9; workers++) {
        int first = 300 + 20 * workers;
        CHILD(first, 1, 1234, "python3\0train.py\0");
        for (int i = 1; i <= workers; i++)
            CHILD(first + i, first + i - 1, 1234, SPAWNED);
        assert_string_equal(of(first + workers, NULL, 0).command, workers == 8 ? "train.py" : "python3");
    }
    CHILD(600, 599, 1234, SPAWNED); /* whose parent has ended */
    assert_string_equal(of(600, NULL, 0).command, "python3");
    CHILD(601, 1, 1234, ""); /* or says nothing */
    CHILD(602, 601, 1234, SPAWNED);
    assert_string_equal(of(602, NULL, 0).command, "python3");
}

/* Tenants are told apart by each of their names; a hash of these stands for them. */
TEST(tenants_differ_by_each_name) {
    struct hec_tenant base = {.pod_namespace = "a",
                              .pod = "b",
                              .container = "c",
                              .job = "1",
                              .step = "2",
                              .array_task = "1_3",
                              .user = "u",
                              .command = "x"};
    char *const text[] = {base.pod_namespace, base.pod,        base.container, base.job,
                          base.step,          base.array_task, base.user,      base.command};
    const struct hec_tenant same = base;
    assert_true(hec_tenant_equal(&base, &same));
    assert_true(hec_tenant_id(&base) == hec_tenant_id(&same));
    for (size_t i = 0; i < sizeof text / sizeof text[0]; i++) {
        char kept = text[i][0];
        text[i][0] = 'Z';
        assert_false(hec_tenant_equal(&base, &same));
        assert_false(hec_tenant_equal(&same, &base));
        assert_true(hec_tenant_id(&base) != hec_tenant_id(&same));
        text[i][0] = kept;
    }
    base.pid = 7;
    assert_false(hec_tenant_equal(&base, &same));
    base.pid = 0;
    base.claimed = true; /* is no name */
    assert_true(hec_tenant_equal(&base, &same));
}
