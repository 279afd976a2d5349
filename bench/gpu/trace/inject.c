/* Libraries for CUDA_INJECTION64_PATH, by PROBE_INJECT: empty; load (dlopen libcupti); register (+ buffer callbacks);
 * cycle (+ kernel activity enabled and disabled once); subscribe (+ a subscriber that asks for nothing); finalize.
 * PROBE_INJECT_VERBOSE: says on stderr when it is called and which libcupti is mapped then. */
#define _GNU_SOURCE
#include <cupti.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void CUPTIAPI on_request(uint8_t **buffer, size_t *size, size_t *max_records) {
    *buffer = aligned_alloc(4096, 1 << 20);
    *size = *buffer ? 1 << 20 : 0;
    *max_records = 0;
}

static void CUPTIAPI on_complete(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    (void)context, (void)stream, (void)size, (void)valid;
    free(buffer);
}

static void CUPTIAPI on_call(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *data) {
    (void)user, (void)domain, (void)id, (void)data;
}

static void maps(void) {
    char line[1024];
    FILE *file = fopen("/proc/self/maps", "r");
    int found = 0;
    while (file && fgets(line, sizeof line, file)) {
        char *path = strchr(line, '/');
        if (path && strstr(path, "cupti") && strstr(line, "r-xp")) {
            path[strcspn(path, "\n")] = 0;
            fprintf(stderr, "{\"inject\": \"InitializeInjection\", \"pid\": %d, \"mapped\": \"%s\"}\n", getpid(), path);
            found = 1;
        }
    }
    if (file)
        fclose(file);
    if (!found)
        fprintf(stderr, "{\"inject\": \"InitializeInjection\", \"pid\": %d, \"mapped\": null}\n", getpid());
}

__attribute__((visibility("default"))) int InitializeInjection(void) {
    const char *what = getenv("PROBE_INJECT"), *path = getenv("PROBE_CUPTI");
    static const char *const steps[] = {"empty", "load", "register", "cycle", "subscribe"};
    int level = 0;
    for (int i = 0; i < 5; i++)
        if (what && !strcmp(what, steps[i]))
            level = i;
    if (getenv("PROBE_INJECT_VERBOSE"))
        maps();
    if (!level)
        return 1;
    void *library = dlopen(path ? path : "libcupti.so.13", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return 1;
    __typeof__(&cuptiActivityRegisterCallbacks) reg = (void *)dlsym(library, "cuptiActivityRegisterCallbacks");
    __typeof__(&cuptiActivityEnable) enable = (void *)dlsym(library, "cuptiActivityEnable");
    __typeof__(&cuptiActivityDisable) disable = (void *)dlsym(library, "cuptiActivityDisable");
    __typeof__(&cuptiSubscribe) subscribe = (void *)dlsym(library, "cuptiSubscribe");
    static CUpti_SubscriberHandle handle;
    if (level == 4)
        subscribe(&handle, on_call, NULL);
    else if (level >= 2)
        reg(on_request, on_complete);
    if (level == 3) {
        enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
        disable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    }
    return 1;
}
