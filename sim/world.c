#include "sim/world.h"

#include "base/clock.h"
#include "sim/clock.h"
#include "sim/file.h"
#include "sim/state.h"

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WORLD_MAGIC UINT64_C(0x31444c524f574348) /* "HCWORLD1" */

struct sim_device {
    struct sim_setting setting; /* where the machine has no file of its state */
    int32_t own_mw;
    struct sim_context contexts[SIM_CONTEXT_MAX]; /* pid 0: free */
    struct sim_timeline timeline;
};

struct sim_page {
    uint64_t magic;
    uint64_t size;
    uint64_t layout;        /* guards against another build: sizes of the structs below */
    struct sim_clock clock; /* common to all that is on the machine, in tests (sim/clock.h) */
    int64_t epoch_ns, wall_offset_ns, virtual_now_ns;
    int64_t swept_ns;
    struct sim_spec spec;
    char boot[SIM_BOOT_SIZE];
    pthread_mutex_t lock;
    struct sim_device devices[];
};

static_assert(offsetof(struct sim_page, clock) == SIM_CLOCK_OFFSET, "where tests/clock looks for it");

struct sim_world {
    struct sim_page *page;
    const struct sim_profile *profile;
    struct sim_file file;
    int state; /* the file of the machine's state; -1: it has none */
};

/* Contexts of dead processes are looked for at most this often. */
#define SWEEP_INTERVAL_NS INT64_C(20000000)

static uint64_t layout(void) {
    return sizeof(struct sim_page) * UINT64_C(1000003) + sizeof(struct sim_device) +
           SIM_ACTIVITY_COUNT * UINT64_C(7919) + SIM_CALL_COUNT;
}

static size_t page_size(const struct sim_spec *spec) {
    return sizeof(struct sim_page) + (size_t)spec->count * sizeof(struct sim_device) +
           (size_t)spec->mig * sizeof(struct sim_timeline);
}

/* The timelines of instances lie behind the devices. */
static struct sim_timeline *instance_timeline(struct sim_page *page, int instance) {
    return (struct sim_timeline *)&page->devices[page->spec.count] + instance;
}

static int instances_of(const struct sim_page *page, int device) {
    return device == 0 ? page->spec.mig : 0;
}

/* Where a context of that instance works. */
static struct sim_timeline *timeline_of(struct sim_page *page, int device, int instance) {
    return instance >= 0 && instance < instances_of(page, device) ? instance_timeline(page, instance)
                                                                  : &page->devices[device].timeline;
}

/* What an instance has of the device's power and counters. */
static double part_of(const struct sim_page *page, int instance) {
    return (double)sim_mig_part(page->spec.mig_slices[instance])->sms / SIM_MIG_SMS;
}

static int64_t real_clock(clockid_t id) {
    struct timespec ts;
    clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * HEC_NS_PER_S + ts.tv_nsec;
}

static int init_lock(pthread_mutex_t *lock) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    int err = pthread_mutex_init(lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
    return err;
}

/* In a test that has loaded one, and where the clock is not set by hand. */
static void start_clock(const struct sim_page *page, int fd) {
    int (*start)(int fd);
    *(void **)&start = dlsym(RTLD_DEFAULT, SIM_CLOCK_START);
    if (start && !page->spec.virtual_time)
        start(fd);
}

static void stop_clock(const struct sim_page *page) {
    void (*stop)(void);
    *(void **)&stop = dlsym(RTLD_DEFAULT, SIM_CLOCK_STOP);
    if (stop && page->clock.started)
        stop();
}

/* The path is kept whole: processes with another working folder open it, too. */
static int find_state(struct sim_page *page, const struct sim_setting *first, struct sim_world *world,
                      struct hec_why *why) {
    const char *given = getenv(SIM_STATE_ENV);
    struct sim_spec *spec = &page->spec;
    world->state = -1;
    if (!spec->state[0] && given && given[0] == '/')
        snprintf(spec->state, sizeof spec->state, "%s", given);
    sim_boot_draw(page->boot);
    return spec->state[0] ? sim_state_open(spec->state, spec->profile, first, &world->state, page->boot, why) : HEC_OK;
}

int sim_world_create(const struct sim_spec *spec, struct sim_world **result, struct hec_why *why) {
    const struct sim_profile *profile = sim_profile_find(spec->profile);
    if (!profile || spec->count < 1 || spec->count > SIM_DEVICE_MAX)
        return hec_fail(why, HEC_ERR_USAGE, "the simulated device is not described");
    struct sim_world *world = calloc(1, sizeof *world);
    if (!world)
        return hec_fail(why, HEC_ERR_NOMEM, "out of memory");
    world->profile = profile;
    int err = sim_file_create(page_size(spec), &world->file, why);
    if (err) {
        free(world);
        return err;
    }
    struct sim_page *page = world->page = world->file.memory;
    struct sim_setting first = {spec->cap_mw ? spec->cap_mw : profile->power_default_mw, 0};
    page->size = world->file.size;
    page->layout = layout();
    page->spec = *spec;
    start_clock(page, world->file.fd);
    page->epoch_ns = page->virtual_now_ns = real_clock(CLOCK_MONOTONIC);
    page->wall_offset_ns = real_clock(CLOCK_REALTIME) - real_clock(CLOCK_MONOTONIC);
    for (int i = 0; i < spec->count; i++) {
        page->devices[i].setting = first;
        sim_timeline_init(&page->devices[i].timeline, page->epoch_ns);
    }
    for (int i = 0; i < spec->mig; i++)
        sim_timeline_init(instance_timeline(page, i), page->epoch_ns);
    if ((err = find_state(page, &first, world, why)) < 0) {
        sim_world_destroy(world);
        return err;
    }
    if (init_lock(&page->lock)) {
        sim_world_destroy(world);
        return hec_fail(why, HEC_ERR_FAILED, "cannot make a lock between processes");
    }
    __atomic_store_n(&page->magic, WORLD_MAGIC, __ATOMIC_RELEASE);
    *result = world;
    return HEC_OK;
}

static int check_page(const struct sim_page *page, size_t size, struct hec_why *why) {
    if (page->magic != WORLD_MAGIC)
        return hec_fail(why, HEC_ERR_CORRUPT, "it is not a simulated machine");
    if (page->layout != layout())
        return hec_fail(why, HEC_ERR_VERSION, "it was made by another version of hec");
    if (page->size != size || page->spec.count < 1 || page->spec.count > SIM_DEVICE_MAX || page->spec.mig < 0 ||
        page->spec.mig > SIM_MIG_MAX || page_size(&page->spec) != size || page->spec.fault_count < 0 ||
        page->spec.fault_count > SIM_FAULT_MAX || !memchr(page->spec.state, '\0', sizeof page->spec.state) ||
        !memchr(page->spec.profile, '\0', sizeof page->spec.profile) || !sim_profile_find(page->spec.profile))
        return hec_fail(why, HEC_ERR_CORRUPT, "it is damaged");
    return HEC_OK;
}

int sim_world_attach(const char *path, struct sim_world **result, struct hec_why *why) {
    if (!path)
        path = getenv(SIM_WORLD_ENV);
    if (!path || !*path)
        return hec_fail(why, HEC_ERR_NOTFOUND,
                        "there is no simulated device here: start the program with `hec run --sim h200 -- PROGRAM`");
    struct sim_world *world = calloc(1, sizeof *world);
    if (!world)
        return hec_fail(why, HEC_ERR_NOMEM, "out of memory");
    int err = sim_file_open(path, sizeof(struct sim_page), &world->file, why);
    if (err == HEC_OK) {
        struct hec_why detail;
        world->page = world->file.memory;
        err = check_page(world->page, world->file.size, &detail);
        if (err) {
            hec_fail(why, err, "cannot use %s: %s", path, detail.text);
            sim_file_close(&world->file);
        }
    }
    if (err) {
        free(world);
        return err;
    }
    world->profile = sim_profile_find(world->page->spec.profile);
    world->state = world->page->spec.state[0] ? sim_state_attach(world->page->spec.state) : -1;
    *result = world;
    return HEC_OK;
}

void sim_world_detach(struct sim_world *world) {
    if (!world)
        return;
    if (world->state >= 0)
        close(world->state);
    sim_file_close(&world->file);
    free(world);
}

void sim_world_destroy(struct sim_world *world) {
    if (world)
        stop_clock(world->page);
    sim_world_detach(world);
}

const char *sim_world_path(const struct sim_world *world) {
    return world->file.path;
}

const struct sim_spec *sim_world_spec(const struct sim_world *world) {
    return &world->page->spec;
}

const struct sim_profile *sim_world_profile(const struct sim_world *world) {
    return world->profile;
}

int64_t sim_world_epoch_ns(const struct sim_world *world) {
    return world->page->epoch_ns;
}

int64_t sim_world_wall_offset_ns(const struct sim_world *world) {
    return world->page->wall_offset_ns;
}

int64_t sim_world_now_ns(const struct sim_world *world) {
    if (world->page->spec.virtual_time)
        return __atomic_load_n(&world->page->virtual_now_ns, __ATOMIC_ACQUIRE);
    return real_clock(CLOCK_MONOTONIC);
}

void sim_world_set_now_ns(struct sim_world *world, int64_t now_ns) {
    if (now_ns > sim_world_now_ns(world))
        __atomic_store_n(&world->page->virtual_now_ns, now_ns, __ATOMIC_RELEASE);
}

void sim_world_spend(const struct sim_world *world, int64_t duration_ns) {
    if (duration_ns <= 0 || world->page->spec.virtual_time)
        return;
    int64_t end = real_clock(CLOCK_MONOTONIC) + duration_ns;
    bool common = world->page->clock.started;           /* it wakes on time */
    if (duration_ns < 100 * HEC_NS_PER_US && !common) { /* a sleep overshoots by about 60 us */
        while (real_clock(CLOCK_MONOTONIC) < end)
            ;
        return;
    }
    struct timespec until = {end / HEC_NS_PER_S, end % HEC_NS_PER_S};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
}

/* Start time of a live process in clock ticks since boot, from field 22 of /proc/PID/stat; 0 when it is gone, or a
 * zombie, which holds no context. */
static uint64_t process_born(pid_t pid) {
    char name[40], text[1024];
    snprintf(name, sizeof name, "/proc/%d/stat", (int)pid);
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    if (length <= 0)
        return 0;
    text[length] = '\0';
    char state;
    unsigned long long born;
    const char *rest = strrchr(text, ')'); /* the command's name may hold anything */
    if (!rest || sscanf(rest + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
                        &state, &born) != 2)
        return 0;
    return state == 'Z' || state == 'X' ? 0 : born;
}

/* instance -1: any. */
static bool occupied(const struct sim_device *device, int instance) {
    for (int i = 0; i < SIM_CONTEXT_MAX; i++)
        if (device->contexts[i].pid && (instance < 0 || device->contexts[i].instance == instance))
            return true;
    return false;
}

static bool presence_open(const struct sim_timeline *timeline) {
    return timeline->presence_head &&
           timeline->presence[(timeline->presence_head - 1) % SIM_PRESENCE_MAX].end_ns == INT64_MAX;
}

static void be_there(struct sim_timeline *timeline, bool has, int64_t now_ns) {
    bool open = presence_open(timeline);
    if (has && !open)
        sim_timeline_arrive(timeline, now_ns);
    else if (!has && open)
        sim_timeline_leave(timeline, now_ns);
}

/* Make the presence follow the table of contexts. */
static void settle(struct sim_page *page, int device, int64_t now_ns) {
    be_there(&page->devices[device].timeline, occupied(&page->devices[device], -1), now_ns);
    for (int i = 0; i < instances_of(page, device); i++)
        be_there(instance_timeline(page, i), occupied(&page->devices[device], i), now_ns);
}

static void close_context(struct sim_world *world, int device, struct sim_context *context, int64_t now_ns) {
    sim_timeline_cut(timeline_of(world->page, device, context->instance), world->profile, context->pid, now_ns);
    memset(context, 0, sizeof *context);
    settle(world->page, device, now_ns);
}

static void sweep(struct sim_world *world, int64_t now_ns) {
    struct sim_page *page = world->page;
    if (page->spec.virtual_time || now_ns - page->swept_ns < SWEEP_INTERVAL_NS)
        return;
    page->swept_ns = now_ns;
    for (int d = 0; d < page->spec.count; d++)
        for (int i = 0; i < SIM_CONTEXT_MAX; i++) {
            struct sim_context *context = &page->devices[d].contexts[i];
            if (context->pid && process_born(context->pid) != context->born)
                close_context(world, d, context, now_ns);
        }
}

static struct sim_device *lock(struct sim_world *world, int device) {
    struct sim_page *page = world->page;
    if (pthread_mutex_lock(&page->lock) == EOWNERDEAD) {
        /* the timelines are consistent at every instant (timeline.c); only the presence may lag behind */
        pthread_mutex_consistent(&page->lock);
        for (int i = 0; i < page->spec.count; i++)
            settle(page, i, sim_world_now_ns(world));
    }
    sweep(world, sim_world_now_ns(world));
    return &page->devices[device];
}

static void unlock(struct sim_world *world) {
    pthread_mutex_unlock(&world->page->lock);
}

/* Under the lock, which guards nothing against other machines of the same file: a setting is written and read as a whole. */
static struct sim_setting setting_of(struct sim_world *world, int device) {
    struct sim_setting setting = world->page->devices[device].setting;
    if (world->state >= 0)
        sim_state_read(world->state, device, &setting);
    return setting;
}

static int change(struct sim_world *world, int device, const struct sim_setting *setting) {
    world->page->devices[device].setting = *setting;
    return world->page->spec.state[0] ? sim_state_write(world->page->spec.state, device, setting) : HEC_OK;
}

static struct sim_limits limits_of(struct sim_world *world, int device) {
    struct sim_setting setting = setting_of(world, device);
    struct sim_limits limits = {setting.cap_mw, world->page->devices[device].own_mw, setting.clock_mhz};
    int32_t outside_mw = world->page->spec.outside_mw;
    if (outside_mw && outside_mw < limits.cap_mw)
        limits.cap_mw = outside_mw;
    if (limits.own_mw && limits.own_mw < limits.cap_mw)
        limits.cap_mw = limits.own_mw;
    return limits;
}

int32_t sim_world_cap_mw(struct sim_world *world, int device) {
    lock(world, device);
    int32_t cap = setting_of(world, device).cap_mw;
    unlock(world);
    return cap;
}

int sim_world_set_cap_mw(struct sim_world *world, int device, int32_t cap_mw) {
    if (cap_mw < world->profile->power_min_mw || cap_mw > world->profile->power_max_mw)
        return HEC_ERR_USAGE;
    lock(world, device);
    struct sim_setting setting = setting_of(world, device);
    setting.cap_mw = cap_mw;
    int err = change(world, device, &setting);
    unlock(world);
    return err;
}

int sim_world_set_clock_mhz(struct sim_world *world, int device, int32_t clock_mhz) {
    if (clock_mhz < 0 || clock_mhz > world->profile->sm_clock_mhz)
        return HEC_ERR_USAGE;
    lock(world, device);
    struct sim_setting setting = setting_of(world, device);
    setting.clock_mhz = clock_mhz;
    int err = change(world, device, &setting);
    unlock(world);
    return err;
}

void sim_world_set_own_mw(struct sim_world *world, int device, int32_t own_mw) {
    lock(world, device)->own_mw = own_mw;
    unlock(world);
}

struct sim_limits sim_world_limits(struct sim_world *world, int device) {
    lock(world, device);
    struct sim_limits limits = limits_of(world, device);
    unlock(world);
    return limits;
}

const char *sim_world_boot(const struct sim_world *world) {
    return world->page->boot;
}

int64_t sim_segment_lasts_ns(struct sim_world *world, int device_index, enum sim_activity activity, int64_t start_ns,
                             int64_t duration_ns) {
    struct sim_device *device = lock(world, device_index);
    struct sim_limits limits = limits_of(world, device_index);
    int64_t lasts =
        sim_lasts_ns(world->profile, &limits, &device->timeline.controller, activity, start_ns, duration_ns);
    unlock(world);
    return lasts;
}

static struct sim_context *find_context(struct sim_device *device, pid_t pid) {
    for (int i = 0; i < SIM_CONTEXT_MAX; i++)
        if (device->contexts[i].pid == pid)
            return &device->contexts[i];
    return NULL;
}

int sim_context_open(struct sim_world *world, int device_index, int instance, pid_t pid, int64_t memory_bytes,
                     int64_t *now_ns) {
    uint64_t born = process_born(pid);
    struct sim_device *device = lock(world, device_index);
    struct sim_context *context = find_context(device, pid);
    int err = HEC_OK;
    *now_ns = sim_world_now_ns(world);
    if (context) {
        context->opened++;
        context->memory_bytes += memory_bytes;
    } else if ((context = find_context(device, 0))) {
        *context = (struct sim_context){0, instance, 1, *now_ns, memory_bytes, born};
        __atomic_store_n(&context->pid, pid, __ATOMIC_RELEASE);
        settle(world->page, device_index, *now_ns);
    } else {
        err = HEC_ERR_FULL;
    }
    unlock(world);
    return err;
}

int sim_context_close(struct sim_world *world, int device_index, pid_t pid, int64_t *now_ns) {
    struct sim_device *device = lock(world, device_index);
    struct sim_context *context = find_context(device, pid);
    *now_ns = sim_world_now_ns(world);
    int err = context ? HEC_OK : HEC_ERR_NOTFOUND;
    if (context && --context->opened == 0)
        close_context(world, device_index, context, *now_ns);
    unlock(world);
    return err;
}

typedef int (*placer)(struct sim_timeline *timeline, const struct sim_profile *profile, const struct sim_limits *limits,
                      pid_t pid, enum sim_activity activity, int64_t start_ns, int64_t duration_ns,
                      struct sim_piece pieces[2]);

static int place(placer how, struct sim_world *world, int device_index, pid_t pid, enum sim_activity activity,
                 int64_t start_ns, int64_t duration_ns, struct sim_piece pieces[2]) {
    struct sim_device *device = lock(world, device_index);
    const struct sim_context *context = find_context(device, pid);
    int count = HEC_ERR_NOTFOUND;
    if (context) {
        int64_t now = sim_world_now_ns(world);
        struct sim_limits limits = limits_of(world, device_index);
        struct sim_timeline *timeline = timeline_of(world->page, device_index, context->instance);
        count =
            how(timeline, world->profile, &limits, pid, activity, start_ns < now ? now : start_ns, duration_ns, pieces);
        double part = timeline == &device->timeline ? 1 : part_of(world->page, context->instance);
        for (int i = 0; i < count; i++)
            pieces[i].power_mw =
                world->profile->context_mw + (int32_t)(part * (pieces[i].power_mw - world->profile->context_mw));
    }
    unlock(world);
    return count;
}

int sim_segment_append(struct sim_world *world, int device_index, pid_t pid, enum sim_activity activity,
                       int64_t start_ns, int64_t duration_ns, struct sim_piece pieces[2]) {
    return place(sim_timeline_append, world, device_index, pid, activity, start_ns, duration_ns, pieces);
}

int sim_segment_extend(struct sim_world *world, int device_index, pid_t pid, enum sim_activity activity,
                       int64_t start_ns, int64_t duration_ns, struct sim_piece pieces[2]) {
    return place(sim_timeline_extend, world, device_index, pid, activity, start_ns, duration_ns, pieces);
}

int sim_world_contexts(struct sim_world *world, int device_index, struct sim_context contexts[SIM_CONTEXT_MAX]) {
    struct sim_device *device = lock(world, device_index);
    int count = 0;
    for (int i = 0; i < SIM_CONTEXT_MAX; i++)
        if (device->contexts[i].pid)
            contexts[count++] = device->contexts[i];
    unlock(world);
    return count;
}

int64_t sim_world_energy_nj(struct sim_world *world, int device, int64_t t_ns) {
    int64_t nj = sim_timeline_energy_nj(&lock(world, device)->timeline, world->profile, t_ns);
    for (int i = 0; i < instances_of(world->page, device); i++)
        nj += (int64_t)(part_of(world->page, i) *
                        (double)sim_timeline_excess_nj(instance_timeline(world->page, i), world->profile, t_ns));
    unlock(world);
    return nj;
}

void sim_world_active(struct sim_world *world, int device, int64_t t_ns, struct sim_active *active) {
    sim_timeline_active(&lock(world, device)->timeline, t_ns, active);
    for (int i = 0; i < instances_of(world->page, device); i++) {
        struct sim_active of_instance;
        sim_timeline_active(instance_timeline(world->page, i), t_ns, &of_instance);
        double part = part_of(world->page, i);
        for (int a = SIM_CONTEXT + 1; a < SIM_ACTIVITY_COUNT; a++) {
            int64_t part_ns = (int64_t)(part * (double)of_instance.ns[a]);
            active->ns[a] += part_ns;
            active->work_ns[a] += (int64_t)(part * (double)of_instance.work_ns[a]);
            active->ns[SIM_CONTEXT] -= part_ns;
            active->work_ns[SIM_CONTEXT] -= part_ns;
        }
    }
    unlock(world);
}

void sim_world_instance_active(struct sim_world *world, int device, int instance, int64_t t_ns,
                               struct sim_active *active) {
    lock(world, device);
    sim_timeline_active(timeline_of(world->page, device, instance), t_ns, active);
    unlock(world);
}

struct sim_instant sim_world_at(struct sim_world *world, int device, int64_t t_ns) {
    struct sim_instant instant = sim_timeline_at(&lock(world, device)->timeline, world->profile, t_ns);
    for (int i = 0; i < instances_of(world->page, device); i++) {
        struct sim_instant other = sim_timeline_at(instance_timeline(world->page, i), world->profile, t_ns);
        if (other.power_mw > instant.power_mw)
            instant = other;
    }
    unlock(world);
    return instant;
}

int64_t sim_world_busy_ns(struct sim_world *world, int device, pid_t pid, int64_t t0_ns, int64_t t1_ns) {
    int64_t busy = sim_timeline_busy_ns(&lock(world, device)->timeline, pid, t0_ns, t1_ns);
    for (int i = 0; i < instances_of(world->page, device); i++)
        busy += sim_timeline_busy_ns(instance_timeline(world->page, i), pid, t0_ns, t1_ns);
    unlock(world);
    return busy;
}

bool sim_world_lost(const struct sim_world *world, int device, int64_t t_ns) {
    const struct sim_spec *spec = &world->page->spec;
    for (int i = 0; i < spec->fault_count; i++)
        if (spec->faults[i].kind == SIM_FAULT_LOST && spec->faults[i].device == device &&
            t_ns - world->page->epoch_ns >= spec->faults[i].at_ns &&
            t_ns - world->page->epoch_ns < spec->faults[i].until_ns)
            return true;
    return false;
}

bool sim_world_instance_there(const struct sim_world *world, int instance, int64_t t_ns) {
    const struct sim_spec *spec = &world->page->spec;
    int64_t since_ns = t_ns - world->page->epoch_ns;
    for (int i = 0; i < spec->fault_count; i++)
        if (spec->faults[i].kind == SIM_FAULT_NOMIG && spec->faults[i].device == instance &&
            since_ns >= spec->faults[i].at_ns && since_ns < spec->faults[i].until_ns)
            return false;
    return instance < spec->mig;
}

int64_t sim_world_reset_ns(const struct sim_world *world, int device, int64_t t_ns, bool *was_reset) {
    const struct sim_spec *spec = &world->page->spec;
    int64_t latest = world->page->epoch_ns;
    *was_reset = false;
    for (int i = 0; i < spec->fault_count; i++) {
        int64_t at = world->page->epoch_ns + spec->faults[i].at_ns;
        if (spec->faults[i].kind == SIM_FAULT_RESET && spec->faults[i].device == device && t_ns >= at) {
            latest = at > latest ? at : latest;
            *was_reset = true;
        }
    }
    return latest;
}
