#include "cli/checks.h"

#include "cli/cupti_version.h"
#include "launch/inject.h"
#include "launch/paths.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AREA_TRACE "trace"
#define AREA_PYTHON "python"

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
    unsigned version = hec_cupti_version(path);
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

void hec_check_trace(const char *cuda_path, const char *cupti_folder, struct hec_check_list *list) {
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

void hec_check_python(struct hec_check_list *list) {
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
