/* Launches, counted without CUPTI: attached, CUPTI slows each launch for good, so that mode auto must know their rate
 * before. Slots and symbols are changed as for the shims (got.c); libcudart's and libcuda's own slots are not, which would
 * count a launch of the runtime again in the driver. The counted libraries stay loaded once they are found. */
#include "tracer/tracer.h"

#include <dlfcn.h>
#include <link.h>

enum { LAUNCH, GRAPH, COPY, CLASSES };
enum { RUNTIME, DRIVER, LIBRARIES };

#define HIDDEN __attribute__((visibility("hidden"), used))
extern uint64_t hec_launches_counted_LAUNCH, hec_launches_counted_GRAPH, hec_launches_counted_COPY;
HIDDEN uint64_t hec_launches_counted_LAUNCH;
HIDDEN uint64_t hec_launches_counted_GRAPH;
HIDDEN uint64_t hec_launches_counted_COPY;

/* A trampoline knows no signature: it counts and goes on to the function, with all registers that can carry an argument,
 * and the stack, as they were. The first instruction is where an indirect call may land under CET and BTI. */
/* clang-format off */
#if defined(__x86_64__)
#define BODY(name, class)                                   \
    ".byte 0xf3, 0x0f, 0x1e, 0xfa\n" /* endbr64 */          \
    "lock incq hec_launches_counted_" #class "(%rip)\n"     \
    "jmp *hec_launches_real_" #name "(%rip)\n"
#elif defined(__aarch64__)
#define BODY(name, class)                                        \
    "hint #34\n" /* bti c */                                     \
    "adrp x16, hec_launches_counted_" #class "\n"                \
    "add x16, x16, :lo12:hec_launches_counted_" #class "\n"      \
    "1: ldxr x17, [x16]\n"                                       \
    "add x17, x17, #1\n"                                         \
    "stxr w9, x17, [x16]\n"                                      \
    "cbnz w9, 1b\n"                                              \
    "adrp x16, hec_launches_real_" #name "\n"                    \
    "ldr x16, [x16, :lo12:hec_launches_real_" #name "]\n"        \
    "br x16\n"
#endif
/* clang-format on */

#define COUNT(name, class, library)                                                                                    \
    extern void *hec_launches_real_##name;                                                                             \
    HIDDEN void *hec_launches_real_##name;                                                                             \
    extern void hec_launches_stub_##name(void) __attribute__((visibility("hidden")));                                  \
    __asm__(".pushsection .text.hec_launches,\"ax\",%progbits\n"                                                       \
            ".p2align 4\n"                                                                                             \
            ".globl hec_launches_stub_" #name "\n"                                                                     \
            ".hidden hec_launches_stub_" #name "\n"                                                                    \
            ".type hec_launches_stub_" #name ",%function\n"                                                            \
            "hec_launches_stub_" #name ":\n" BODY(name, class) ".size hec_launches_stub_" #name                        \
                                                               ", .-hec_launches_stub_" #name "\n"                     \
                                                               ".popsection\n");
#define WAIT(name, library, parameters, arguments)
#include "tracer/launches.def"
#undef COUNT
#undef WAIT

/* How many threads wait, in the upper 16 bits, and the sum of what they waited, in the lower 48, ns: the start of a wait
 * that has not ended is subtracted, so that `now` for each that waits is missing in it. One word, so that both are
 * of the same moment. */
#define WAITED_BITS 48
#define WAITED_MASK ((UINT64_C(1) << WAITED_BITS) - 1)
static uint64_t waiting;
static uint64_t waits_of; /* changes in the child of a fork: a wait that began in the parent does not end here */

static void change(int64_t threads, int64_t ns) {
    uint64_t now = __atomic_load_n(&waiting, __ATOMIC_RELAXED), then;
    do {
        then = (((now >> WAITED_BITS) + (uint64_t)threads) << WAITED_BITS) | ((now + (uint64_t)ns) & WAITED_MASK);
    } while (!__atomic_compare_exchange_n(&waiting, &now, then, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

#define COUNT(name, class, library)
#define WAIT(name, library, parameters, arguments)                                                                     \
    static int(*real_##name) parameters;                                                                               \
    static int wait_##name parameters {                                                                                \
        uint64_t epoch = __atomic_load_n(&waits_of, __ATOMIC_RELAXED);                                                 \
        change(1, -hec_out_now_ns());                                                                                  \
        int result = real_##name arguments;                                                                            \
        if (epoch == __atomic_load_n(&waits_of, __ATOMIC_RELAXED))                                                     \
            change(-1, hec_out_now_ns());                                                                              \
        return result;                                                                                                 \
    }
#include "tracer/launches.def"
#undef COUNT
#undef WAIT

static const struct target {
    void **real;
    int class, library; /* class CLASSES: a wait */
} targets[] = {
#define COUNT(name, class, library) {&hec_launches_real_##name, class, library},
#define WAIT(name, library, parameters, arguments) {(void **)&real_##name, CLASSES, library},
#include "tracer/launches.def"
#undef COUNT
#undef WAIT
};
#define TARGETS (sizeof targets / sizeof targets[0])

static struct hec_got_hook hooks[TARGETS] = {
#define COUNT(name, class, library) {#name, NULL, (void *)hec_launches_stub_##name},
#define WAIT(name, library, parameters, arguments) {#name, NULL, (void *)wait_##name},
#include "tracer/launches.def"
#undef COUNT
#undef WAIT
};

static uint64_t generation;
static uint32_t launch_slots;
static bool symbol_changed[TARGETS]; /* what is bound from now on finds the trampoline */

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

struct found {
    char path[LIBRARIES][HEC_LIBRARY_PATH_MAX];
};

static int find(struct dl_phdr_info *info, size_t size, void *context) {
    (void)size;
    static const char *const prefixes[LIBRARIES] = {"libcudart", "libcuda.so"};
    struct found *found = context;
    const char *path = info->dlpi_name;
    size_t length = path ? strnlen(path, HEC_LIBRARY_PATH_MAX) : 0;
    for (int i = 0; length > 0 && length < HEC_LIBRARY_PATH_MAX && i < LIBRARIES; i++)
        if (!found->path[i][0] && strncmp(base_name(path), prefixes[i], strlen(prefixes[i])) == 0)
            memcpy(found->path[i], path, length + 1);
    return 0;
}

/* Whose slots are left alone: what serves the calls. */
static bool serves(const char *module) {
    static const char *const prefixes[] = {"libcuda.so", "libcudart", "libcupti", "libnvidia-", "libnvperf"};
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
        if (strncmp(base_name(module), prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

static bool visit(const char *module, const struct hec_got_hook *hook, bool bound, void *context) {
    (void)context;
    size_t at = (size_t)(hook - hooks);
    if (serves(module) || (!bound && !symbol_changed[at]))
        return false;
    launch_slots += targets[at].class == LAUNCH;
    return bound; /* else it will find the changed symbol */
}

/* A slot of theirs that is not bound yet would find it, too. */
static bool visit_serving(const char *module, const struct hec_got_hook *hook, bool bound, void *context) {
    (void)hook;
    (void)context;
    return !bound && serves(module);
}

static void bind_serving(void) {
    struct hec_got_hook plain[TARGETS];
    for (size_t at = 0; at < TARGETS; at++)
        plain[at] = (struct hec_got_hook){hooks[at].name, hooks[at].real, hooks[at].real};
    hec_got_patch(plain, TARGETS, 0, visit_serving, NULL);
}

void hec_launches_rescan(void) {
    static struct found found; /* some KB: not for the stack of whoever called cuInit */
    uint64_t now = hec_got_generation();
    if (now == generation)
        return;
    generation = now;
    memset(&found, 0, sizeof found);
    dl_iterate_phdr(find, &found);
    for (int i = 0; i < LIBRARIES; i++) {
        void *handle = found.path[i][0] ? dlopen(found.path[i], RTLD_NOW | RTLD_NOLOAD) : NULL;
        uint32_t taken = 0;
        for (size_t at = 0; handle && at < TARGETS; at++) {
            if (targets[at].library != i || hooks[at].real)
                continue;
            void *real = dlsym(handle, hooks[at].name);
            if (!real)
                continue;
            __atomic_store_n(targets[at].real, real, __ATOMIC_RELEASE); /* before anybody can come by */
            hooks[at].real = real;
            taken++;
        }
        if (handle && taken == 0)
            dlclose(handle);
    }
    bind_serving();
    for (size_t at = 0; at < TARGETS; at++)
        symbol_changed[at] = symbol_changed[at] || hec_got_patch_symbols(&hooks[at], 1) == 1;
    hec_got_patch(hooks, TARGETS, 0, visit, NULL);
}

bool hec_launches_open(void) {
    hec_launches_rescan();
    return launch_slots > 0;
}

void hec_launches_read(struct hec_launches *out) {
    out->launches = __atomic_load_n(&hec_launches_counted_LAUNCH, __ATOMIC_RELAXED);
    out->graphs = __atomic_load_n(&hec_launches_counted_GRAPH, __ATOMIC_RELAXED);
    out->copies = __atomic_load_n(&hec_launches_counted_COPY, __ATOMIC_RELAXED);
    uint64_t word = __atomic_load_n(&waiting, __ATOMIC_RELAXED);
    out->t_ns = hec_out_now_ns();
    out->waited_ns = (int64_t)((word + (word >> WAITED_BITS) * (uint64_t)out->t_ns) & WAITED_MASK);
}

/* The slots stay as they are, and lead to the same functions. */
void hec_launches_forget(void) {
    __atomic_store_n(&hec_launches_counted_LAUNCH, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&hec_launches_counted_GRAPH, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&hec_launches_counted_COPY, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&waiting, 0, __ATOMIC_RELAXED);
    __atomic_fetch_add(&waits_of, 1, __ATOMIC_RELAXED);
}
