/* An empty CUPTI client: records thrown away. As a library for CUDA_INJECTION64_PATH it does what PROBE_INJECT says:
 * empty; load (dlopen libcupti); register (+ buffer callbacks); cycle (+ kernel activity enabled and disabled once);
 * subscribe (a subscriber that asks for nothing); kernels (as cycle, but it stays enabled). Loaded otherwise (ctypes), a bench calls
 * client_* itself. PROBE_INJECT_VERBOSE: says on stderr when it is called and which libcupti is mapped then. */
#define _GNU_SOURCE
#include <cupti.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define BUFFER_BYTES ((size_t)1 << 20)

#define CALLS(X)                                                                                                       \
    X(ActivityRegisterCallbacks)                                                                                       \
    X(ActivityEnable)                                                                                                  \
    X(ActivityDisable)                                                                                                 \
    X(ActivityFlushAll)                                                                                                \
    X(ActivityGetNextRecord)                                                                                           \
    X(ActivityGetNumDroppedRecords)                                                                                    \
    X(Subscribe)                                                                                                       \
    X(Unsubscribe)                                                                                                     \
    X(EnableAllDomains)                                                                                                \
    X(EnableCallback)                                                                                                  \
    X(Finalize)

static struct {
#define X(name) __typeof__(&cupti##name) name;
    CALLS(X)
#undef X
} cupti;

static atomic_ullong kinds[64];
static uint8_t *spare[256]; /* buffers are used again, as any real client does */
static int spare_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUpti_SubscriberHandle handle;
static atomic_int finalize_wanted, finalize_code = -1;

static void CUPTIAPI on_request(uint8_t **buffer, size_t *size, size_t *max_records) {
    pthread_mutex_lock(&lock);
    *buffer = spare_count ? spare[--spare_count] : aligned_alloc(4096, BUFFER_BYTES);
    pthread_mutex_unlock(&lock);
    *size = *buffer ? BUFFER_BYTES : 0;
    *max_records = 0;
}

static void CUPTIAPI on_complete(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    (void)context, (void)stream, (void)size;
    CUpti_Activity *record = NULL;
    while (valid && cupti.ActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
        atomic_fetch_add_explicit(&kinds[record->kind & 63], 1, memory_order_relaxed);
    pthread_mutex_lock(&lock);
    if (buffer && spare_count < 256)
        spare[spare_count++] = buffer;
    else
        free(buffer);
    pthread_mutex_unlock(&lock);
}

static void CUPTIAPI on_call(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *data) {
    (void)user, (void)domain, (void)id;
    const CUpti_CallbackData *info = data;
    if (info->callbackSite == CUPTI_API_EXIT && atomic_exchange(&finalize_wanted, 0))
        finalize_code = (int)cupti.Finalize();
}

/* 0, or 1 where no libcupti is found. PROBE_CUPTI names it; default: the one that is mapped or found. */
EXPORT int client_load(void) {
    const char *path = getenv("PROBE_CUPTI");
    void *library = dlopen(path ? path : "libcupti.so.13", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return 1;
#define X(name) cupti.name = (__typeof__(cupti.name))dlsym(library, "cupti" #name);
    CALLS(X)
#undef X
    return 0;
}

EXPORT int client_register(void) {
    return cupti.ActivityRegisterCallbacks(on_request, on_complete);
}

EXPORT int client_set(int kind, int on) {
    return on ? cupti.ActivityEnable((CUpti_ActivityKind)kind) : cupti.ActivityDisable((CUpti_ActivityKind)kind);
}

EXPORT int client_flush(int forced) {
    return cupti.ActivityFlushAll(forced);
}

EXPORT unsigned long long client_records(int kind) {
    return atomic_exchange(&kinds[kind & 63], 0);
}

EXPORT unsigned long long client_dropped(void) {
    size_t dropped = 0;
    cupti.ActivityGetNumDroppedRecords(NULL, 0, &dropped);
    return dropped;
}

/* 0: at once, by this thread. 1: by the thread that next returns from cudaStreamSynchronize or cudaDeviceSynchronize. */
EXPORT int client_finalize(int in_callback) {
    if (!in_callback)
        return cupti.Finalize();
    CUptiResult code = cupti.Subscribe(&handle, on_call, NULL);
    finalize_code = -1;
    finalize_wanted = 1;
    if (!code)
        code = cupti.EnableCallback(1, handle, CUPTI_CB_DOMAIN_RUNTIME_API,
                                    CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_v3020);
    if (!code)
        code = cupti.EnableCallback(1, handle, CUPTI_CB_DOMAIN_RUNTIME_API,
                                    CUPTI_RUNTIME_TRACE_CBID_cudaDeviceSynchronize_v3020);
    return code;
}

EXPORT int client_subscribe(void) {
    return cupti.Subscribe(&handle, on_call, NULL);
}

EXPORT int client_unsubscribe(void) {
    return cupti.Unsubscribe(handle);
}

EXPORT int client_domains_off(void) {
    return cupti.EnableAllDomains(0, handle);
}

EXPORT int client_finalized(void) {
    return finalize_code;
}

static void say_maps(void) {
    char line[1024];
    int found = 0;
    FILE *file = fopen("/proc/self/maps", "r");
    while (file && fgets(line, sizeof line, file)) {
        char *path = strchr(line, '/');
        if (path && strstr(path, "libcupti.so") && strstr(line, "r-xp")) {
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

EXPORT int InitializeInjection(void) {
    static const char *const steps[] = {"empty", "load", "register", "cycle", "subscribe", "kernels"};
    const char *what = getenv("PROBE_INJECT");
    int level = 0;
    for (int i = 0; i < 6; i++)
        if (what && !strcmp(what, steps[i]))
            level = i;
    if (getenv("PROBE_INJECT_VERBOSE"))
        say_maps();
    if (!level || client_load())
        return 1;
    if (level == 4)
        cupti.Subscribe(&handle, on_call, NULL);
    else if (level >= 2)
        client_register();
    if (level == 3 || level == 5)
        client_set(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 1);
    if (level == 3)
        client_set(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 0);
    return 1;
}
