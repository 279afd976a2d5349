#include "tracer/tracer.h"

#include <dlfcn.h>
#include <pthread.h>
#include <time.h>

struct hec_hold hec_hold;

static pthread_mutex_t control = PTHREAD_MUTEX_INITIALIZER;
static pthread_t holder;  /* atomic; 0: nobody */
static pthread_t forking; /* atomic: the thread that holds it for a fork; 0: none */

/* Whose CUPTI calls come from which files. */
static const struct {
    const char *part; /* of the file's name */
    const char *holder;
} holders[] = {
    {"libtorch", "torch.profiler"}, {"kineto", "torch.profiler"},  {"xla", "jax.profiler"},
    {"jax", "jax.profiler"},        {"proton", "triton.profiler"}, {"libtriton", "triton.profiler"},
    {"cupy", "cupy.cuda.profiler"},
};

bool hec_hold_enter(void) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    int64_t ns = until.tv_nsec + HEC_HOLD_WAIT_MS * HEC_NS_PER_MS;
    until.tv_sec += ns / HEC_NS_PER_S;
    until.tv_nsec = ns % HEC_NS_PER_S;
    if (pthread_mutex_timedlock(&control, &until) != 0)
        return false;
    __atomic_store_n(&holder, pthread_self(), __ATOMIC_RELAXED);
    return true;
}

void hec_hold_leave(void) {
    __atomic_store_n(&holder, (pthread_t)0, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&control);
}

bool hec_hold_inside(void) {
    return pthread_equal(__atomic_load_n(&holder, __ATOMIC_RELAXED), pthread_self());
}

void hec_hold_forget(void) {
    pthread_mutex_init(&control, NULL);
    holder = forking = 0;
    memset(&hec_hold, 0, sizeof hec_hold);
}

const char *hec_hold_caller(const void *address, char *text, size_t bytes) {
    Dl_info info;
    const char *path = dladdr(address, &info) && info.dli_fname ? info.dli_fname : "";
    const char *slash = strrchr(path, '/');
    const char *file = slash ? slash + 1 : path;
    for (size_t i = 0; i < sizeof holders / sizeof holders[0]; i++)
        if (strstr(file, holders[i].part))
            file = holders[i].holder;
    size_t length = strnlen(file, bytes - 1);
    memcpy(text, file, length);
    text[length] = '\0';
    return text;
}

static void report(const char *name, uint32_t code) {
    struct hec_ring_record record = {.t_ns = hec_out_now_ns()};
    hec_out_lock();
    struct hec_trace_holder *out = &hec_out_payload(&record)->holder;
    out->name = name ? hec_intern_name(name[0] ? name : "another user of CUPTI") : 0;
    out->code = code;
    if (!name || out->name != 0)
        hec_out_write(&record, HEC_TRACE_HOLDER);
    hec_out_unlock();
}

/* For good: kinds that are on again after somebody else's session are the ones that were seen to end programs. */
void hec_hold_stand_down(const char *name, uint32_t code) {
    __atomic_store_n(&hec_hold.last_ns, hec_out_now_ns(), __ATOMIC_RELAXED);
    if (hec_tracer.attach == HEC_ATTACH_ON)
        hec_attach_off("another user of CUPTI came", true);
    else if (hec_tracer.draining || hec_buffers_out() > 0)
        hec_attach_settle(); /* what still ran when the window was reported would be in their profile */
    hec_tracer.attach = HEC_ATTACH_QUIET;
    __atomic_store_n(&hec_hold.serving, HEC_HOLD_THEM, __ATOMIC_RELEASE);
    if (!hec_hold.reported)
        report(name ? name : "", code);
    hec_hold.reported = true;
}

static bool used(void) {
    return __atomic_load_n(&hec_hold.kinds, __ATOMIC_ACQUIRE) ||
           __atomic_load_n(&hec_hold.contexts, __ATOMIC_ACQUIRE) ||
           __atomic_load_n(&hec_hold.second, __ATOMIC_ACQUIRE) ||
           __atomic_load_n(&hec_hold.forever, __ATOMIC_ACQUIRE) || hec_hold.named > 0;
}

bool hec_hold_free(void) {
    return !used() && __atomic_load_n(&hec_hold.serving, __ATOMIC_ACQUIRE) == HEC_HOLD_US;
}

void hec_hold_ended(int64_t now_ns) {
    if (!hec_hold.reported || used() ||
        now_ns - __atomic_load_n(&hec_hold.last_ns, __ATOMIC_RELAXED) < HEC_HOLD_QUIET_NS)
        return;
    hec_hold.reported = false;
    report(NULL, 0);
}

/* Only our own thread, under `busy`, and other users of CUPTI have it: those wait for nothing of a fork's. */
void hec_hold_fork_prepare(void) {
    if (!hec_hold_inside() && hec_hold_enter())
        __atomic_store_n(&forking, pthread_self(), __ATOMIC_RELAXED);
}

void hec_hold_fork_parent(void) {
    if (!pthread_equal(__atomic_load_n(&forking, __ATOMIC_RELAXED), pthread_self()))
        return;
    __atomic_store_n(&forking, (pthread_t)0, __ATOMIC_RELAXED);
    hec_hold_leave();
}
