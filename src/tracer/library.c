#include "tracer/tracer.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Loading one wrong libcupti after the other into somebody's process is no search: so many are tried. */
#define TRIES_MAX 4
#define CANDIDATES_MAX 24

static const struct call {
    const char *name;
    bool needed;
    size_t offset;
} calls[] = {
#define CALL(name, needed, parameters) {"cupti" #name, needed, offsetof(struct hec_cupti, name)},
#include "tracer/cupti.def"
#undef CALL
};

/* Bind a loaded library; 0 when it has all that is needed and a known version. */
static int bind_calls(void *handle, struct hec_library *library, char *why, size_t why_bytes) {
    memset(&library->calls, 0, sizeof library->calls);
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        void *address = dlsym(handle, calls[i].name);
        if (!address && calls[i].needed) {
            snprintf(why, why_bytes, "%.200s is no CUPTI that can be used: it lacks %s", library->path, calls[i].name);
            return -1;
        }
        memcpy((char *)&library->calls + calls[i].offset, &address, sizeof address);
    }
    library->version = 0;
    library->calls.GetVersion(&library->version);
    if (library->version < HEC_CUPTI_VERSION_MIN || library->version >= HEC_CUPTI_VERSION_LIMIT) {
        snprintf(why, why_bytes, "%.200s has version %u of CUPTI; known are 11.8 (%u) to 13 (below %u)", library->path,
                 library->version, HEC_CUPTI_VERSION_MIN, HEC_CUPTI_VERSION_LIMIT);
        return -1;
    }
    library->handle = handle;
    return 0;
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

uint32_t hec_library_major(const char *path) {
    const char *so = strstr(base_name(path), ".so.");
    unsigned long major = so ? strtoul(so + 4, NULL, 10) : 0;
    return major < 1000 ? (uint32_t)major : 0;
}

static bool copy_path(char *out, const char *path, size_t length) {
    if (length >= HEC_LIBRARY_PATH_MAX)
        return false;
    memcpy(out, path, length);
    out[length] = '\0';
    return true;
}

static int visit(struct dl_phdr_info *info, size_t size, void *context) {
    (void)size;
    struct hec_library_places *places = context;
    const char *path = info->dlpi_name;
    if (!path || !path[0])
        return 0;
    const char *name = base_name(path);
    /* Triton bundles its own libcupti for its profiler: of another version than the process's CUDA, as often as not */
    if (strncmp(name, "libcupti.so", 11) == 0 && !strstr(path, "/triton/") && places->cupti_count < 4 &&
        copy_path(places->cupti[places->cupti_count], path, strlen(path)))
        places->cupti_count++;
    if (strncmp(name, "libcudart.so", 12) == 0 && !places->cudart[0])
        copy_path(places->cudart, path, strlen(path));
    if (!places->packages[0]) {
        const char *packages = strstr(path, "/site-packages/");
        if (!packages)
            packages = strstr(path, "/dist-packages/");
        if (packages)
            copy_path(places->packages, path, (size_t)(packages - path) + strlen("/site-packages"));
    }
    return 0;
}

static void add_candidate(char (*out)[HEC_LIBRARY_PATH_MAX], uint32_t *count, uint32_t max, const char *format,
                          const char *folder, const char *suffix) {
    if (*count >= max)
        return;
    int length = snprintf(out[*count], HEC_LIBRARY_PATH_MAX, format, folder, suffix);
    if (length <= 0 || length >= HEC_LIBRARY_PATH_MAX)
        return;
    for (uint32_t i = 0; i < *count; i++)
        if (strcmp(out[i], out[*count]) == 0)
            return;
    (*count)++;
}

uint32_t hec_library_candidates(const struct hec_library_places *places, uint32_t major,
                                char (*out)[HEC_LIBRARY_PATH_MAX], uint32_t max) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < places->cupti_count; i++)
        add_candidate(out, &count, max, "%s%s", places->cupti[i], "");
    char runtime[HEC_LIBRARY_PATH_MAX] = "";
    if (places->cudart[0])
        copy_path(runtime, places->cudart, (size_t)(base_name(places->cudart) - places->cudart));
    uint32_t first = places->cudart[0] ? hec_library_major(places->cudart) : 0;
    if (first == 0 || first > major)
        first = major;
    for (uint32_t version = first; version >= 11; version--) {
        char suffix[16];
        snprintf(suffix, sizeof suffix, version == 11 ? "11.8" : "%u", version);
        if (runtime[0]) {
            add_candidate(out, &count, max, "%slibcupti.so.%s", runtime, suffix);
            add_candidate(out, &count, max, "%s../../cuda_cupti/lib/libcupti.so.%s", runtime, suffix);
            add_candidate(out, &count, max, "%s../extras/CUPTI/lib64/libcupti.so.%s", runtime, suffix);
            add_candidate(out, &count, max, "%s../../../extras/CUPTI/lib64/libcupti.so.%s", runtime, suffix);
        }
        if (places->packages[0]) {
            char folder[64];
            snprintf(folder, sizeof folder, "cu%u/lib/libcupti.so.%s", version, suffix);
            add_candidate(out, &count, max, "%s/nvidia/%s", places->packages, folder);
            add_candidate(out, &count, max, "%s/nvidia/cuda_cupti/lib/libcupti.so.%s", places->packages, suffix);
        }
        add_candidate(out, &count, max, "%slibcupti.so.%s", "", suffix); /* where the loader looks */
        if (version == first) {
            add_candidate(out, &count, max, "%s/extras/CUPTI/lib64/libcupti.so.%s", "/usr/local/cuda", suffix);
            add_candidate(out, &count, max, "%s/lib64/libcupti.so.%s", "/usr/local/cuda", suffix);
        }
    }
    return count;
}

static uint32_t driver_version(void) {
    return hec_device_driver_version();
}

/* 0, 1: there is no such file, -1: it cannot be used. */
static int try_one(const char *path, bool mapped, struct hec_library *library, char *why, size_t why_bytes) {
    if (path[0] == '/' && access(path, R_OK) != 0)
        return 1;
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | (mapped ? RTLD_NOLOAD : 0));
    if (!handle) {
        const char *error = dlerror();
        if (path[0] != '/')
            return 1;
        snprintf(why, why_bytes, "%.200s cannot be loaded: %.200s", path, error ? error : "");
        return -1;
    }
    struct link_map *map = NULL;
    const char *real = dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map->l_name[0] ? map->l_name : path;
    copy_path(library->path, real, strnlen(real, HEC_LIBRARY_PATH_MAX - 1));
    if (bind_calls(handle, library, why, why_bytes) == 0) {
        library->was_mapped = mapped;
        return 0;
    }
    dlclose(handle);
    return -1;
}

int hec_library_open(struct hec_library *library, char *why, size_t why_bytes) {
    memset(library, 0, sizeof *library);
    library->driver_version = driver_version();
    const char *chosen = secure_getenv(HEC_TRACE_ENV_CUPTI);
    if (chosen && chosen[0]) {
        int err = try_one(chosen, false, library, why, why_bytes);
        if (err > 0)
            snprintf(why, why_bytes, "%s=%.300s: no such file", HEC_TRACE_ENV_CUPTI, chosen);
        return err ? -1 : 0;
    }
    static struct hec_library_places places; /* some KB: not for the stack of whoever called cuInit */
    static char candidates[CANDIDATES_MAX][HEC_LIBRARY_PATH_MAX];
    memset(&places, 0, sizeof places);
    dl_iterate_phdr(visit, &places);
    uint32_t major = library->driver_version / 1000;
    uint32_t count = hec_library_candidates(&places, major ? major : 13, candidates, CANDIDATES_MAX);
    why[0] = '\0';
    int tries = 0;
    for (uint32_t i = 0; i < count && tries < TRIES_MAX; i++) {
        int err = try_one(candidates[i], i < places.cupti_count, library, why, why_bytes);
        if (err == 0)
            return 0;
        tries += err < 0;
        /* a second copy beside one that is mapped would fight with it over the driver */
        if (i + 1 == places.cupti_count)
            break;
    }
    if (!why[0])
        snprintf(
            why, why_bytes,
            "no libcupti for CUDA %u was found: neither loaded, nor beside libcudart, nor in nvidia/ of the Python "
            "packages, nor on the loader's path (set " HEC_TRACE_ENV_CUPTI " to name one)",
            major ? major : 13);
    return -1;
}

void hec_library_result(const struct hec_cupti *cupti, uint32_t result, char *text, size_t bytes) {
    const char *name = NULL;
    if (!cupti->GetResultString || cupti->GetResultString(result, &name) != HEC_CUPTI_SUCCESS || !name)
        name = "";
    snprintf(text, bytes, "%u %.60s", result, name);
}
