#include "agent/power.h"

#include "act/power_device.h"
#include "act/off_peak.h"
#include "act/power_guard.h"
#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

_Static_assert(HEC_DEVICE_MAX <= HEC_BUDGET_DEVICES, "a reading for each device");

struct limited { /* a device of the guard */
    char uuid[HEC_NVML_UUID_SIZE];
    int64_t least_mw, most_mw;
    int64_t own_mw;   /* its limit when it was not ours */
    int64_t ours_mw;  /* what was set; 0: it is its own */
    int64_t freed_ns; /* since when it is not ours: what was read before may be */
    bool alone;       /* left alone */
};

struct hec_power_share {
    struct hec_power_share_options options;
    struct hec_power_guard *guard;
    struct hec_node *node;
    struct hec_power_rules rules;
    struct timespec rules_changed;
    struct hec_signals carbon, prices;
    bool rules_failing, was_short;
    struct limited limited[HEC_POWER_DEVICES];
    int limited_count;
    struct hec_budget budget;
    struct limited *of[HEC_DEVICE_MAX];            /* by hec_device.index; NULL: its limit is never set */
    int64_t looked_ns, traffic_ns[HEC_DEVICE_MAX]; /* of the newest traffic of each device that was taken */
    pthread_t thread;
    bool started;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    bool stopping;
    struct hec_power_said said;
};

/* ---- beginning ---- */

static int read_devices(struct hec_power_share *share, struct hec_why *why) {
    struct hec_power_machine machine;
    struct hec_power_device devices[HEC_POWER_DEVICES];
    int err = hec_power_machine_open(share->options.simulated, &machine, why);
    if (err < 0)
        return err;
    int count = err = hec_power_devices(&machine, NULL, devices, why);
    for (int i = 0; i < count; i++) {
        struct limited *limited = &share->limited[share->limited_count];
        struct hec_why reason;
        snprintf(limited->uuid, sizeof limited->uuid, "%s", devices[i].uuid);
        if (hec_power_device_range(&machine, &devices[i], HEC_POWER_CAP, &limited->least_mw, &limited->most_mw,
                                   &reason) < 0 ||
            hec_power_device_read(&machine, &devices[i], HEC_POWER_CAP, &limited->own_mw, &reason) < 0)
            hec_warn("the power budget leaves the %s alone: %s", devices[i].name, reason.text);
        else
            share->limited_count++;
    }
    hec_power_machine_close(&machine);
    if (err >= 0 && share->limited_count == 0)
        return hec_fail(why, HEC_ERR_UNSUPPORTED, "no GPU of this machine takes a limit of power");
    return err < 0 ? err : HEC_OK;
}

/* What a condition asks for is there. */
static int check_rules(const struct hec_power_share *share, const struct hec_power_rules *rules, struct hec_why *why) {
    if (hec_power_rules_ask(rules, HEC_WHEN_CO2) && !share->carbon.count)
        return hec_fail(why, HEC_ERR_USAGE, "%s: co2 needs --carbon-file FILE", share->options.rules);
    if (hec_power_rules_ask(rules, HEC_WHEN_PRICE) && !share->prices.count)
        return hec_fail(why, HEC_ERR_USAGE, "%s: price needs --price-file FILE", share->options.rules);
    return HEC_OK;
}

/* As it is now. A file that cannot be read leaves what was, after the start. */
static int read_rules(struct hec_power_share *share, struct hec_why *why) {
    struct stat info;
    struct hec_power_rules *fresh = malloc(sizeof *fresh);
    if (!fresh)
        return hec_fail(why, HEC_ERR_NOMEM, "no memory for the rules of power");
    int err = hec_power_rules_read(share->options.rules, fresh, why);
    if (stat(share->options.rules, &info) == 0)
        share->rules_changed = info.st_mtim;
    if (err == HEC_OK)
        err = check_rules(share, fresh, why);
    if (err == HEC_OK)
        share->rules = *fresh;
    free(fresh);
    return err;
}

static void read_rules_again(struct hec_power_share *share) {
    struct stat info;
    struct hec_why why = {""};
    if (stat(share->options.rules, &info) == 0 && info.st_mtim.tv_sec == share->rules_changed.tv_sec &&
        info.st_mtim.tv_nsec == share->rules_changed.tv_nsec)
        return;
    bool failing = read_rules(share, &why) < 0;
    if (failing && !share->rules_failing)
        hec_warn("the classes of jobs under the power budget stay as they were: %s", why.text);
    else if (!failing)
        hec_info("the classes of jobs under the power budget were read again");
    share->rules_failing = failing;
}

/* How much slower each class may be by now. */
static void follow_grid(struct hec_power_share *share) {
    struct hec_why why = {""};
    if (hec_signals_renew(&share->carbon, &why) < 0 || hec_signals_renew(&share->prices, &why) < 0)
        hec_warn("the power budget goes by what was known of the grid: %s", why.text);
    struct hec_when_now now = hec_off_peak_now(&share->carbon, &share->prices, hec_clock_wall_ns() / HEC_NS_PER_S);
    for (int c = 0; c < HEC_POWER_CLASS_COUNT; c++)
        share->budget.slowdown[c] = hec_power_rules_slowdown(&share->rules, (enum hec_power_class)c, &now);
}

static int read_grid(struct hec_power_share *share, struct hec_why *why) {
    share->carbon.carbon = true;
    int err = share->options.carbon ? hec_signals_add(&share->carbon, share->options.carbon, why) : HEC_OK;
    return err == HEC_OK && share->options.prices ? hec_signals_add(&share->prices, share->options.prices, why) : err;
}

int hec_power_share_open(const struct hec_power_share_options *options, struct hec_power_share **out,
                         struct hec_why *why) {
    struct hec_power_share *share = *out = calloc(1, sizeof *share);
    struct hec_power_options guard = {.simulated = options->simulated, .allowed = options->allowed};
    if (!share)
        return hec_fail(why, HEC_ERR_NOMEM, "no memory for the power budget");
    share->options = *options;
    hec_budget_begin(&share->budget, options->watts);
    share->said.budget_w = options->watts;
    pthread_mutex_init(&share->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&share->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    int err = read_grid(share, why);
    if (err == HEC_OK)
        err = read_rules(share, why);
    if (err == HEC_OK)
        err = hec_power_guard_open(&guard, &share->guard, why);
    if (err == HEC_OK)
        err = read_devices(share, why);
    if (err < 0) {
        hec_power_share_close(share);
        *out = NULL;
    }
    return err;
}

/* ---- a look ---- */

static struct limited *limited_of(struct hec_power_share *share, const char *uuid) {
    for (int i = 0; i < share->limited_count; i++)
        if (strcmp(share->limited[i].uuid, uuid) == 0)
            return &share->limited[i];
    return NULL;
}

/* The first class of those who hold it; none where nobody does, or one of them takes no part. */
static enum hec_power_class class_of(struct hec_power_share *share, struct hec_node_device *device, int64_t now_ns,
                                     uint64_t *holders) {
    struct hec_node *node = share->node;
    size_t count = hec_node_list_tenants(node, device, now_ns);
    enum hec_power_class first = HEC_POWER_CLASS_COUNT;
    *holders = 0;
    for (size_t i = 0; i < count; i++) {
        enum hec_power_class one = hec_power_rules_class(&share->rules, node->holders[i].tenant);
        if (one == HEC_POWER_CLASS_COUNT)
            return one;
        first = one < first ? one : first;
        *holders += hec_tenant_id(node->holders[i].tenant);
    }
    return first;
}

/* What was read since the last look alone. */
static double traffic_of(struct hec_power_share *share, const struct hec_node_device *device, int index,
                         int64_t now_ns) {
    int64_t t_ns = device->newest[HEC_GPM_DRAM_ACTIVE].t_ns;
    if (t_ns == share->traffic_ns[index])
        return NAN;
    share->traffic_ns[index] = t_ns;
    return hec_node_value_of(share->node, device, HEC_GPM_DRAM_ACTIVE, now_ns);
}

static void read_device(struct hec_power_share *share, int index, int64_t now_ns, struct hec_budget_reading *reading) {
    struct hec_node *node = share->node;
    struct hec_node_device *device = node->devices[index];
    *reading =
        (struct hec_budget_reading){.power_class = HEC_POWER_CLASS_COUNT, .least_w = NAN, .own_w = NAN, .watts = NAN};
    if (!device || !device->seen)
        return;
    struct limited *limited = share->of[index] = limited_of(share, device->info.uuid);
    const struct hec_node_value *limit = &device->newest[HEC_GPU_POWER_LIMIT];
    double watts = hec_node_value_of(node, device, HEC_GPU_POWER, now_ns) * 1e-3;
    reading->there = true;
    reading->watts = isnan(watts) ? hec_node_value_of(node, device, HEC_GPU_POWER_INSTANT, now_ns) * 1e-3 : watts;
    double idle_w = hec_node_idle_w(node, device, now_ns);
    reading->idle_w = isnan(idle_w) ? 0 : idle_w;
    reading->clock_mhz = hec_node_value_of(node, device, HEC_GPU_SM_CLOCK, now_ns);
    reading->busy = hec_node_value_of(node, device, HEC_GPU_UTIL, now_ns) * 1e-3;
    reading->traffic = traffic_of(share, device, index, now_ns);
    if (limited && limited->ours_mw == 0 && limit->t_ns > limited->freed_ns && limit->value > 0)
        limited->own_mw = limit->value; /* an administrator may have set another */
    if (limited && device->up && !limited->alone)
        reading->power_class = class_of(share, device, now_ns, &reading->holders);
    if (limited) {
        reading->own_w = (double)limited->own_mw * 1e-3;
        reading->least_w = fmin((double)limited->least_mw * 1e-3, reading->own_w);
    }
}

static void leave_alone(struct limited *limited, const struct hec_why *why) {
    limited->alone = true;
    limited->ours_mw = 0;
    limited->freed_ns = hec_clock_mono_ns();
    hec_warn("the power budget leaves %s alone from now on: %s", limited->uuid, why->text);
}

/* limit_mw 0: its own. Whether it holds. */
static bool write_limit(struct hec_power_share *share, struct limited *limited, int64_t limit_mw) {
    struct hec_why why = {""};
    int err = limit_mw ? hec_power_guard_set_of(share->guard, limited->uuid, HEC_POWER_CAP, limit_mw, &why)
                       : hec_power_guard_clear_of(share->guard, limited->uuid, &why);
    if (err == HEC_ERR_LOST) /* without rights the agent cannot put them back itself */
        hec_fail(
            &why, err,
            "the guardian of the limits was killed; the next start of the agent, or hec doctor --restore, puts them back");
    if (err < 0) {
        leave_alone(limited, &why);
        return false;
    }
    limited->ours_mw = limit_mw;
    if (!limit_mw)
        limited->freed_ns = hec_clock_mono_ns();
    return true;
}

/* Those that fall first; where one of these does not, nothing rises until the budget is divided again. */
static void write_limits(struct hec_power_share *share, const double *limits) {
    bool held = true;
    for (int rise = 0; rise < 2 && held; rise++)
        for (int index = 0; index < HEC_DEVICE_MAX; index++) {
            struct limited *limited = share->of[index];
            if (!limited || limited->alone)
                continue;
            int64_t limit_mw = isnan(limits[index]) ? limited->own_mw : (int64_t)(limits[index] * 1000);
            int64_t before_mw = limited->ours_mw ? limited->ours_mw : limited->own_mw;
            if (limit_mw != before_mw && (limit_mw > before_mw) == (rise == 1))
                held &= write_limit(share, limited, limit_mw == limited->own_mw ? 0 : limit_mw);
        }
}

static void say_short(struct hec_power_share *share) {
    bool is_short = share->budget.short_w > 0;
    if (is_short && !share->was_short)
        hec_warn(
            "the power budget cannot hold: what GPUs that take no part draw, and the lowest limits of the others, are %.0f W "
            "more",
            share->budget.short_w);
    else if (!is_short && share->was_short)
        hec_info("the power budget holds again");
    share->was_short = is_short;
}

static void look(struct hec_power_share *share) {
    struct hec_budget_reading readings[HEC_DEVICE_MAX];
    double limits[HEC_DEVICE_MAX], sum_w = 0;
    struct hec_node *node = share->node;
    int64_t now_ns = hec_clock_mono_ns();
    read_rules_again(share);
    follow_grid(share);
    pthread_mutex_lock(&node->lock);
    for (int index = 0; index < HEC_DEVICE_MAX; index++)
        read_device(share, index, now_ns, &readings[index]);
    pthread_mutex_unlock(&node->lock);
    for (int index = 0; index < HEC_DEVICE_MAX; index++)
        sum_w += isfinite(readings[index].watts) ? readings[index].watts : 0;
    hec_budget_divide(&share->budget, (double)now_ns * 1e-9, readings, HEC_DEVICE_MAX, limits);
    write_limits(share, limits);
    say_short(share);
    pthread_mutex_lock(&share->lock);
    share->said.short_w = share->budget.short_w;
    if (sum_w > share->options.watts && share->looked_ns)
        share->said.over_s += (double)(now_ns - share->looked_ns) * 1e-9;
    for (int index = 0; index < HEC_DEVICE_MAX; index++) {
        share->said.devices[index].known = readings[index].there;
        share->said.devices[index].power_class = readings[index].power_class;
    }
    pthread_mutex_unlock(&share->lock);
    share->looked_ns = now_ns;
}

static void *look_again(void *context) {
    struct hec_power_share *share = context;
    int64_t due_ns = hec_clock_mono_ns();
    pthread_mutex_lock(&share->lock);
    while (!share->stopping) {
        pthread_mutex_unlock(&share->lock);
        look(share);
        int64_t now_ns = hec_clock_mono_ns();
        due_ns += share->node->interval_ns;
        due_ns = due_ns > now_ns ? due_ns : now_ns + share->node->interval_ns;
        struct timespec until = {due_ns / HEC_NS_PER_S, due_ns % HEC_NS_PER_S};
        pthread_mutex_lock(&share->lock);
        while (!share->stopping && pthread_cond_timedwait(&share->changed, &share->lock, &until) != ETIMEDOUT)
            ;
    }
    pthread_mutex_unlock(&share->lock);
    return NULL;
}

int hec_power_share_start(struct hec_power_share *share, struct hec_node *node, struct hec_why *why) {
    share->node = node;
    int errnum = pthread_create(&share->thread, NULL, look_again, share);
    share->started = errnum == 0;
    return errnum ? hec_fail(why, hec_err_from_errno(errnum), "cannot start the power budget: %s", strerror(errnum))
                  : HEC_OK;
}

void hec_power_share_read(struct hec_power_share *share, struct hec_power_said *said) {
    pthread_mutex_lock(&share->lock);
    *said = share->said;
    pthread_mutex_unlock(&share->lock);
}

void hec_power_share_close(struct hec_power_share *share) {
    struct hec_why why = {""};
    if (!share)
        return;
    pthread_mutex_lock(&share->lock);
    share->stopping = true;
    pthread_cond_signal(&share->changed);
    pthread_mutex_unlock(&share->lock);
    if (share->started)
        pthread_join(share->thread, NULL);
    int err = hec_power_guard_close(share->guard, &why);
    if (err < 0)
        hec_error("agent: limits of power could not be put back: %s", why.text);
    else if (why.text[0])
        hec_warn("%s", why.text);
    pthread_mutex_destroy(&share->lock);
    pthread_cond_destroy(&share->changed);
    hec_signals_free(&share->carbon);
    hec_signals_free(&share->prices);
    free(share);
}
