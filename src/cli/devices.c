/* hec devices and hec doctor: what is here, and what can be measured of it. */
#include "act/power_device.h"
#include "act/power_guard.h"
#include "act/power_journal.h"
#include "base/log.h"
#include "base/trace.h"
#include "cli/load.h"
#include "launch/descendants.h"
#include "launch/guard.h"
#include "launch/inject.h"
#include "launch/paths.h"
#include "launch/simulation.h"
#include "model/check.h"
#include "model/trace.h"
#include "observe/collector.h"
#include "report/run/devices.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Whether what enters a command is here: rows for `hec doctor`, areas "trace" and "python"; and what hec itself
 * has left. */

#define AREA_TRACE "trace"
#define AREA_PYTHON "python"
#define AREA_POWER "power"

/* ---- CUPTI ---- */

/* The version of a libcupti, asked in a process of its own.
 * What lies where a libcupti usually does may be anything: it is loaded into a child, which may die, hang or print of it. */

#define ANSWER_MS 10000

static void answer(const char *path, int to) {
    unsigned version = 0;
    int nowhere = open("/dev/null", O_RDWR);
    for (int fd = 0; fd <= 2; fd++)
        dup2(nowhere, fd);
    void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    unsigned (*get)(unsigned *) = library ? (unsigned (*)(unsigned *))dlsym(library, "cuptiGetVersion") : NULL;
    if (get && get(&version) == 0 && write(to, &version, sizeof version) != (ssize_t)sizeof version)
        _exit(1);
    _exit(0);
}

/* cuptiGetVersion of the library at path; 0: it cannot be loaded, is none, died, or did not answer within 10 s. */
static unsigned cupti_version(const char *path) {
    int ends[2];
    unsigned version = 0;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return 0;
    pid_t child = fork();
    if (child == 0)
        answer(path, ends[1]);
    close(ends[1]);
    struct pollfd readable = {.fd = ends[0], .events = POLLIN};
    if (child > 0 &&
        (poll(&readable, 1, ANSWER_MS) != 1 || read(ends[0], &version, sizeof version) != (ssize_t)sizeof version))
        version = 0;
    close(ends[0]);
    if (child > 0) {
        kill(child, SIGKILL);
        while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    return version;
}

/* Where libcupti lies: %s is the value of the variable, an absolute path; a place without it is passed over. The tracer looks beside
 * the CUDA runtime of the program first; from outside a program only these places are known. */
static const struct {
    const char *variable, *pattern;
} places[] = {
    {HEC_TRACE_ENV_CUPTI, "%s"},
    {"VIRTUAL_ENV", "%s/lib/python3*/site-packages/nvidia/cu1[0-9]/lib/libcupti.so.1*"},
    {"VIRTUAL_ENV", "%s/lib/python3*/site-packages/nvidia/cuda_cupti/lib/libcupti.so.1*"},
    {"CONDA_PREFIX", "%s/lib/libcupti.so.1*"},
    {"CONDA_PREFIX", "%s/lib/python3*/site-packages/nvidia/cu*/lib/libcupti.so.1*"},
    {"HOME", "%s/.local/lib/python3*/site-packages/nvidia/cu*/lib/libcupti.so.1*"},
    {NULL, "/usr/local/lib/python3*/*-packages/nvidia/cu*/lib/libcupti.so.1*"},
    {NULL, "/usr/lib/python3*/*-packages/nvidia/cu*/lib/libcupti.so.1*"},
    {"CUDA_HOME", "%s/extras/CUPTI/lib64/libcupti.so.1*"},
    {NULL, "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.1*"},
    {NULL, "/usr/lib/*-linux-gnu/libcupti.so.1*"},
};

struct found {
    char path[512]; /* the first that works */
    unsigned version;
    int others;
};

static bool same_folder(const char *a, const char *b) {
    const char *end = strrchr(a, '/');
    return end && strncmp(a, b, (size_t)(end - a) + 1) == 0 && strrchr(b, '/') == b + (end - a);
}

static void add_path(struct found *found, const char *path) {
    if (found->path[0]) {
        found->others += !same_folder(path, found->path); /* libcupti.so.13 and .so.13.0 are one */
        return;
    }
    unsigned version = cupti_version(path);
    if (version == 0 || strlen(path) >= sizeof found->path)
        return;
    snprintf(found->path, sizeof found->path, "%s", path);
    found->version = version;
}

static void look(const char *pattern, struct found *found) {
    glob_t list;
    if (glob(pattern, 0, NULL, &list) != 0)
        return;
    for (size_t i = 0; i < list.gl_pathc; i++)
        add_path(found, list.gl_pathv[i]);
    globfree(&list);
}

static void look_everywhere(const char *folder, struct found *found) {
    char pattern[1024];
    if (folder) {
        snprintf(pattern, sizeof pattern, "%s/libcupti.so.1*", folder);
        if (folder[0])
            look(pattern, found);
        return;
    }
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        const char *value = places[i].variable ? getenv(places[i].variable) : "";
        /* a relative one would name a file of whatever folder this is; only HEC_TRACE_CUPTI is meant for hec */
        if (!value || (places[i].variable && !*value) || (i > 0 && places[i].variable && *value != '/'))
            continue;
        if (snprintf(pattern, sizeof pattern, places[i].pattern, value) < (int)sizeof pattern)
            look(pattern, found);
    }
}

/* cuDriverGetVersion, which needs no cuInit: 13000 for 13.0; 0: there is no driver. */
static int driver_version(const char *path) {
    int version = 0;
    void *library = dlopen(path ? path : "libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
    int (*get)(int *) = library ? (int (*)(int *))dlsym(library, "cuDriverGetVersion") : NULL;
    if (get && get(&version) != 0)
        version = 0;
    return version; /* stays loaded: drivers do not like to be unloaded */
}

static void check_cupti(int driver, const char *folder, struct hec_check_list *list) {
    struct found found = {{0}, 0, 0};
    struct hec_check *row;
    look_everywhere(folder, &found);
    char others[64] = "";
    if (found.others > 0)
        snprintf(others, sizeof others, " (and in %d more places)", found.others);
    /* from CUDA 13 on the version is that of CUDA (130001); before it counted (18 to 28 are CUDA 11.8 to 12.9) */
    int major = found.version >= 100000 ? (int)found.version / 10000 : 0;
    char name[32];
    if (major > 0)
        snprintf(name, sizeof name, "CUDA %d.%u", major, found.version / 100 % 100);
    else
        snprintf(name, sizeof name, "version %u", found.version);
    if (!found.path[0]) {
        row = hec_check_add(list, AREA_TRACE, "CUPTI", HEC_CHECK_LIMITED,
                            "no libcupti where it usually lies; one that comes with a program (a PyTorch wheel, a "
                            "container) is found when that runs");
        snprintf(row->remedy, sizeof row->remedy,
                 "package cuda-cupti of the toolkit, `pip install nvidia-cuda-cupti`, or %s=PATH", HEC_TRACE_ENV_CUPTI);
    } else if (driver > 0 && major > driver / 1000) {
        row =
            hec_check_add(list, AREA_TRACE, "CUPTI", HEC_CHECK_LIMITED, "%s is of %s, newer than the driver's %d.%d%s",
                          found.path, name, driver / 1000, driver % 1000 / 10, others);
        snprintf(row->remedy, sizeof row->remedy, "a newer driver, or the libcupti of CUDA %d", driver / 1000);
    } else {
        hec_check_add(list, AREA_TRACE, "CUPTI", HEC_CHECK_OK, "%s: %s%s", name, found.path, others);
    }
}

/* cuda_path: the CUDA driver's library, NULL: the system's. cupti_folder: where a libcupti is, NULL: looked for in the
 * toolkit and in the Python packages of this user; "": there is none. */
static void check_trace(const char *cuda_path, const char *cupti_folder, struct hec_check_list *list) {
    char path[PATH_MAX];
    struct hec_why why;
    struct hec_check *row;
    if (hec_path_lib("hec/" HEC_INJECT_LIBRARY, path, &why) == HEC_OK) {
        row = hec_check_add(list, AREA_TRACE, "tracer", HEC_CHECK_OK, "%.200s", path);
        snprintf(row->cost, sizeof row->cost,
                 "calls: about 0.1 us each; CUPTI where the program waits for the device, or with --trace=full");
    } else {
        row = hec_check_add(list, AREA_TRACE, "tracer", HEC_CHECK_MISSING, "%.250s", why.text);
        snprintf(row->remedy, sizeof row->remedy, "install hec completely: " HEC_INJECT_LIBRARY " belongs beside it");
    }
    const char *taken = getenv(HEC_INJECT_VARIABLE);
    if (taken && *taken && !hec_inject_is_ours(taken)) {
        row = hec_check_add(list, AREA_TRACE, "way in", HEC_CHECK_MISSING, HEC_INJECT_VARIABLE " is taken by %.180s",
                            taken);
        snprintf(row->remedy, sizeof row->remedy, "unset " HEC_INJECT_VARIABLE);
    } else {
        hec_check_add(list, AREA_TRACE, "way in", HEC_CHECK_OK, HEC_INJECT_VARIABLE " is free");
    }
    int driver = driver_version(cuda_path);
    if (driver > 0) {
        hec_check_add(list, AREA_TRACE, "CUDA driver", HEC_CHECK_OK, "CUDA %d.%d", driver / 1000, driver % 1000 / 10);
    } else {
        row = hec_check_add(list, AREA_TRACE, "CUDA driver", HEC_CHECK_MISSING,
                            "libcuda.so.1 is not here: no program can use a GPU");
        snprintf(row->remedy, sizeof row->remedy, "NVIDIA's driver; in a container, `--gpus all`");
    }
    check_cupti(driver, cupti_folder, list);
}

static void check_python(struct hec_check_list *list) {
    char path[PATH_MAX];
    struct hec_why why;
    const char *autoload = getenv("TORCH_DEVICE_BACKEND_AUTOLOAD");
    if (hec_inject_hooks_folder(path, &why) < 0) {
        struct hec_check *row = hec_check_add(list, AREA_PYTHON, "hooks", HEC_CHECK_MISSING, "%.250s", why.text);
        snprintf(row->remedy, sizeof row->remedy, "install hec completely: share/hec/python belongs to it");
    } else {
        hec_check_add(list, AREA_PYTHON, "hooks", HEC_CHECK_OK,
                      "steps, phases and stacks of PyTorch programs are found; not under `python -I`, -S or -E%s",
                      autoload && strcmp(autoload, "0") == 0 ? " (autoload of PyTorch is off: sitecustomize does it)"
                                                             : "");
    }
    if (hec_path_lib("libhec.so.0", path, &why) == HEC_OK)
        hec_check_add(list, AREA_PYTHON, "marks", HEC_CHECK_OK, "%.200s", path);
    else
        hec_check_add(list, AREA_PYTHON, "marks", HEC_CHECK_MISSING, "%.250s", why.text);
}

/* What the guard remembers, as rows for `hec doctor`, and forgetting it. */

#define GUARD_NAME "guard"
#define GUARD_SHOWN 8 /* of at most 64 */

/* Forgets what is asked for; a file that says nothing is removed as a whole. Returns how many, or an error. */
static int forget(struct hec_guard *guard, bool simulated, struct hec_why *why) {
    char path[PATH_MAX];
    int err = hec_guard_read(guard, why);
    if (err < 0 && hec_guard_path(path, why) == HEC_OK && unlink(path) == 0)
        return 0;
    int count = err < 0 ? err : hec_guard_forget(guard, simulated);
    if (count > 0 && (err = hec_guard_write(guard, why)) < 0)
        return err;
    return count;
}

static void add_guard_entry(const struct hec_guard_entry *entry, const char *driver, struct hec_check_list *list) {
    char words[200];
    hec_guard_words(entry, words);
    if (!hec_guard_matches(entry, driver)) {
        hec_check_add(list, AREA_TRACE, GUARD_NAME, HEC_CHECK_OK, "%.160s: the driver or CUPTI is another one now",
                      words);
        return;
    }
    struct hec_check *row =
        hec_check_add(list, AREA_TRACE, GUARD_NAME, HEC_CHECK_LIMITED, "%.160s, --trace=%s: auto stays without CUPTI",
                      words, hec_trace_mode_name(entry->mode));
    snprintf(row->remedy, sizeof row->remedy,
             "`hec doctor --forget%s` lets CUPTI in again; --trace=full attaches it all the same",
             hec_guard_is_simulated(entry) ? " --sim SPEC" : "");
}

/* What the guard (launch/guard.h) remembers; forget: drops it first. simulated: of simulated GPUs. */
static void check_guard(bool simulated, bool drop, struct hec_check_list *list) {
    struct hec_guard guard;
    struct hec_why why = {""};
    char driver[48];
    int forgotten = drop ? forget(&guard, simulated, &why) : 0, shown = 0;
    hec_guard_driver(simulated, driver);
    int err = forgotten < 0 ? forgotten : hec_guard_read(&guard, &why);
    if (err < 0) {
        struct hec_check *row = hec_check_add(list, AREA_TRACE, GUARD_NAME, HEC_CHECK_LIMITED, "%.250s", why.text);
        if (err == HEC_ERR_CORRUPT || err == HEC_ERR_VERSION)
            snprintf(row->remedy, sizeof row->remedy, "`hec doctor --forget` removes it");
        return;
    }
    for (int i = guard.count - 1; i >= 0; i--)
        if (hec_guard_is_simulated(&guard.entries[i]) == simulated && shown++ < GUARD_SHOWN)
            add_guard_entry(&guard.entries[i], driver, list);
    if (shown > GUARD_SHOWN)
        hec_check_add(list, AREA_TRACE, GUARD_NAME, HEC_CHECK_OK, "and %d older ones", shown - GUARD_SHOWN);
    if (!shown)
        hec_check_add(list, AREA_TRACE, GUARD_NAME, HEC_CHECK_OK,
                      "no program is remembered that died with CUPTI attached%s",
                      forgotten > 0 ? "; forgotten just now" : "");
}

/* What the power guard has not put back, as rows for `hec doctor`, and putting it back. */

#define POWER_NAME "limits"

static void add_power_entry(void *context, const char *path, int err, const struct hec_power_entry *entry,
                            const char *why) {
    struct hec_check_list *list = context;
    struct hec_check *row;
    char prior[32], value[32];
    if (err < 0) {
        row = hec_check_add(list, AREA_POWER, POWER_NAME, HEC_CHECK_LIMITED, "%.250s", why);
        snprintf(row->remedy, sizeof row->remedy, "when the limits are right (nvidia-smi -q), remove %.100s", path);
        return;
    }
    hec_power_value_words(entry->knob, entry->prior, prior);
    hec_power_value_words(entry->knob, entry->value, value);
    if (hec_process_start((pid_t)entry->holder) == (unsigned long long)entry->holder_start) {
        hec_check_add(list, AREA_POWER, POWER_NAME, HEC_CHECK_OK,
                      "%.50s: %s, as long as process %lld (%.60s) runs; then %s", entry->uuid, value,
                      (long long)entry->holder, entry->program, prior);
        return;
    }
    row = hec_check_add(list, AREA_POWER, POWER_NAME, HEC_CHECK_LIMITED,
                        "%.50s: %s instead of %s, left by process %lld (%.60s)", entry->uuid, value, prior,
                        (long long)entry->holder, entry->program);
    snprintf(row->remedy, sizeof row->remedy, "`hec doctor --restore` puts it back");
}

static void restore_power(struct hec_check_list *list) {
    struct hec_buf said;
    struct hec_why why = {""};
    char *rest, *line;
    int left;
    hec_buf_init(&said, 65536);
    if (hec_power_restore(&left, &said, &why) < 0)
        hec_check_add(list, AREA_POWER, POWER_NAME, HEC_CHECK_LIMITED, "%.250s", why.text);
    for (rest = said.data; rest && (line = strsep(&rest, "\n"));)
        if (*line)
            hec_check_add(list, AREA_POWER, POWER_NAME, HEC_CHECK_OK, "%.250s", line);
    hec_buf_free(&said);
}

/* What hec has changed of power limits and clocks (act/power_journal.h), area "power"; put_back: tries that first. */
static void check_power(bool put_back, struct hec_check_list *list) {
    int before = list->count;
    if (put_back)
        restore_power(list);
    hec_power_journal_each(add_power_entry, list);
    if (list->count == before)
        hec_check_add(list, AREA_POWER, POWER_NAME, HEC_CHECK_OK, "hec has changed none, or put them back");
}

struct look {
    struct hec_report_style style;
    struct hec_simulation *simulation;
    struct hec_observe_options observe;
    struct hec_buf out;
};

/* What both verbs begin with. HEC_OK, or an error that was reported. */
static int begin(struct look *look, const struct hec_args *args) {
    int err = hec_load_style(args, STDOUT_FILENO, &look->style);
    if (err < 0)
        return err;
    const char *spec = hec_args_value(args, HEC_OPT_SIM);
    struct hec_why why = {""};
    if (spec && (err = hec_simulation_begin(spec, &look->simulation, &why)) < 0) {
        hec_error("%s", why.text);
        return err;
    }
    look->observe.nvml_path = spec ? hec_simulation_nvml(look->simulation) : NULL;
    look->observe.visible_devices = getenv("CUDA_VISIBLE_DEVICES");
    hec_buf_init(&look->out, 16u << 20);
    return HEC_OK;
}

static int end(struct look *look, int err) {
    err = hec_print_made(&look->out, err);
    hec_simulation_end(look->simulation);
    return err;
}

/* The GPUs of all vendors; why there are none where a collector says it. */
static int find_devices(const struct hec_observe_options *options, struct hec_device *devices) {
    struct hec_why why, first = {""};
    int count = 0;
    for (const struct hec_collector *const *all = hec_collectors_of(HEC_OBSERVER_RUN); *all; all++) {
        why.text[0] = '\0';
        int found = (*all)->devices ? (*all)->devices(options, devices + count, HEC_DEVICE_MAX - count, &why) : 0;
        count += found > 0 ? found : 0;
        if (found < 0 && !first.text[0])
            hec_fail(&first, found, "%s", why.text[0] ? why.text : hec_err_text(found));
    }
    if (count == 0 && first.text[0])
        hec_warn("%s", first.text);
    return count;
}

int hec_verb_devices(struct hec_args *args) {
    struct look look = {0};
    int err = begin(&look, args);
    if (err != HEC_OK)
        return err;
    struct hec_device devices[HEC_DEVICE_MAX];
    int count = find_devices(&look.observe, devices);
    bool json = hec_args_has(args, HEC_OPT_JSON);
    return end(&look,
               hec_report_devices(devices, count, hec_args_has(args, HEC_OPT_PARTS), json, &look.style, &look.out));
}

int hec_verb_doctor(struct hec_args *args) {
    struct look look = {0};
    int err = begin(&look, args);
    if (err != HEC_OK)
        return err;
    struct hec_check_list list = {0};
    check_power(hec_args_has(args, HEC_OPT_RESTORE), &list); /* before this process opens a driver itself */
    for (const struct hec_collector *const *all = hec_collectors_of(HEC_OBSERVER_RUN); *all; all++)
        if ((*all)->check)
            (*all)->check(&look.observe, &list);
    check_trace(look.simulation ? hec_simulation_cuda(look.simulation) : NULL,
                look.simulation ? hec_simulation_cupti(look.simulation) : NULL, &list);
    check_guard(look.simulation != NULL, hec_args_has(args, HEC_OPT_FORGET), &list);
    check_python(&list);
    return end(&look, hec_report_doctor(&list, hec_args_has(args, HEC_OPT_JSON), &look.style, &look.out));
}
