/* CPU package and DRAM energy: a counter of microjoules that wraps, unwrapped here.
 *
 * The counter covers everything the package does, not only the command. A wrap takes from about a minute (65 kJ at 1
 * kW) to half an hour, so a reading a second is plenty; a zone whose range is smaller is read more often. */
#include "base/clock.h"
#include "base/error.h"
#include "observe/collector.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The RAPL zones of powercap (Documentation/power/powercap/powercap.rst of Linux); AMD's are under the same name. */

#define RAPL_ZONES_MAX 64

enum rapl_kind {
    RAPL_PACKAGE,
    RAPL_DRAM,     /* not part of the package's energy */
    RAPL_PLATFORM, /* "psys": the packages are part of it */
    RAPL_PART      /* cores, uncore: part of a package */
};

struct rapl_zone {
    enum rapl_kind kind;
    int index;        /* K of intel-rapl:K, also for the zones below it */
    char name[32];    /* "package-0", "dram" */
    char path[192];   /* of energy_uj */
    int64_t range_uj; /* at which it wraps; 0: unknown */
    double power_w;   /* highest power limit that the zone states, 0: none */
    int error;        /* HEC_OK, or why energy_uj cannot be read */
};

/* One number from a file; returns HEC_OK or HEC_ERR_*. fd: an open file. */
static int rapl_read_number(int fd, int64_t *out) {
    char text[64];
    ssize_t length;
    do
        length = pread(fd, text, sizeof text - 1, 0);
    while (length < 0 && errno == EINTR);
    if (length < 0)
        return hec_err_from_errno(errno);
    text[length] = '\0';
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || errno || value < 0)
        return HEC_ERR_CORRUPT;
    *out = value;
    return HEC_OK;
}

static int read_file(int dir, const char *zone, const char *name, char *text, size_t size) {
    char path[320];
    snprintf(path, sizeof path, "%s/%s", zone, name);
    int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return hec_err_from_errno(errno);
    ssize_t length = read(fd, text, size - 1);
    int err = length < 0 ? hec_err_from_errno(errno) : HEC_OK;
    close(fd);
    text[length > 0 ? length : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return err;
}

static int64_t read_number(int dir, const char *zone, const char *name) {
    char text[64];
    if (read_file(dir, zone, name, text, sizeof text) != HEC_OK)
        return 0;
    long long value = strtoll(text, NULL, 10);
    return value > 0 ? value : 0;
}

static enum rapl_kind kind_of(const char *name) {
    if (strncmp(name, "package", 7) == 0)
        return RAPL_PACKAGE;
    if (strcmp(name, "dram") == 0)
        return RAPL_DRAM;
    if (strcmp(name, "psys") == 0)
        return RAPL_PLATFORM;
    return RAPL_PART;
}

static double highest_power_w(int dir, const char *zone) {
    static const char *const names[] = {"constraint_0_power_limit_uw", "constraint_1_power_limit_uw",
                                        "constraint_0_max_power_uw", "constraint_1_max_power_uw"};
    int64_t highest = 0;
    for (int i = 0; i < 4; i++) {
        int64_t value = read_number(dir, zone, names[i]);
        if (value > highest)
            highest = value;
    }
    return (double)highest / 1e6;
}

/* "intel-rapl:1" and "intel-rapl:1:0"; intel-rapl-mmio: shows a package a second time and is left out. */
static bool parse_zone_name(const char *text, int *index, bool *top) {
    static const char prefix[] = "intel-rapl:";
    if (strncmp(text, prefix, sizeof prefix - 1) != 0)
        return false;
    char *end;
    long value = strtol(text + sizeof prefix - 1, &end, 10);
    if (end == text + sizeof prefix - 1 || value < 0 || value > INT_MAX || (*end != '\0' && *end != ':'))
        return false;
    *index = (int)value;
    *top = *end == '\0';
    return true;
}

static int by_kind_and_index(const void *a, const void *b) {
    const struct rapl_zone *x = a, *y = b;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

/* The zones under path, packages first, ascending. Returns their number (0: no RAPL here) or HEC_ERR_*. */
static int rapl_zones(const char *path, struct rapl_zone zones[RAPL_ZONES_MAX]) {
    DIR *dir = opendir(path);
    if (!dir)
        return errno == ENOENT ? 0 : hec_err_from_errno(errno);
    int count = 0;
    const struct dirent *entry;
    while (count < RAPL_ZONES_MAX && (entry = readdir(dir))) {
        struct rapl_zone *zone = &zones[count];
        bool top;
        char name[64];
        memset(zone, 0, sizeof *zone);
        if (!parse_zone_name(entry->d_name, &zone->index, &top) ||
            read_file(dirfd(dir), entry->d_name, "name", name, sizeof name) != HEC_OK)
            continue;
        snprintf(zone->name, sizeof zone->name, "%.31s", name);
        zone->kind = kind_of(name);
        if (snprintf(zone->path, sizeof zone->path, "%s/%s/energy_uj", path, entry->d_name) >= (int)sizeof zone->path)
            continue;
        zone->range_uj = read_number(dirfd(dir), entry->d_name, "max_energy_range_uj");
        zone->power_w = highest_power_w(dirfd(dir), entry->d_name);
        zone->error = read_file(dirfd(dir), entry->d_name, "energy_uj", name, sizeof name);
        count++;
    }
    closedir(dir);
    qsort(zones, (size_t)count, sizeof *zones, by_kind_and_index);
    return count;
}

#define AREA "cpu energy" /* of hec doctor */
#define PERIOD_NS HEC_NS_PER_S
#define PERIOD_MIN_NS (10 * HEC_NS_PER_MS)
#define POWER_DEFAULT_W 1000.0 /* no package draws more; used where the zone states no limit */
#define POWER_FACTOR 3.0       /* short bursts exceed the stated limits */

struct domain {
    struct rapl_zone zone;
    enum hec_metric metric;
    int fd;
    int64_t last_uj, total_uj;
    int64_t last_ns; /* 0: not read yet */
    bool failed;     /* reported, and not read since */
};

struct rapl {
    const struct hec_sink *sink;
    struct domain domains[RAPL_ZONES_MAX];
    int count;
    int64_t period_ns, next_ns;
};

static void report(const struct rapl *self, enum hec_event_kind kind, int64_t t_ns, const char *text) {
    self->sink->event(self->sink->context, kind, HEC_DEVICE_NONE, t_ns, text);
}

static double most_uj(const struct domain *domain, int64_t elapsed_ns) {
    double power_w = domain->zone.power_w > 0 ? domain->zone.power_w : POWER_DEFAULT_W;
    return POWER_FACTOR * power_w * ((double)elapsed_ns / 1e3 + 1e4); /* 10 ms for the counter's own period */
}

/* How much was added since the last reading; false when that cannot be known. */
static bool added_uj(const struct domain *domain, int64_t value_uj, int64_t elapsed_ns, int64_t *added) {
    int64_t range = domain->zone.range_uj;
    if (range > 0 && most_uj(domain, elapsed_ns) >= (double)range)
        return false; /* it may have wrapped more than once */
    *added = value_uj - domain->last_uj;
    if (*added >= 0)
        return true;
    if (range <= 0 || domain->last_uj > range)
        return false;
    *added += range;
    return (double)*added <= most_uj(domain, elapsed_ns); /* more is no wrap: it was set back */
}

static void lose(struct rapl *self, struct domain *domain, int64_t value_uj, int64_t now_ns) {
    char text[200];
    double seconds = (double)(now_ns - domain->last_ns) / 1e9;
    bool back = value_uj < domain->last_uj;
    snprintf(text, sizeof text, "RAPL %s (domain %d): %s; its energy of %.1f s is lost", domain->zone.name,
             domain->zone.index,
             back ? "the counter went backwards by more than a wrap explains"
                  : "it was not read for so long that it may have wrapped",
             seconds);
    report(self, back ? HEC_EVENT_COUNTER_RESET : HEC_EVENT_GAP, now_ns, text);
}

static void read_domain(struct rapl *self, struct domain *domain) {
    int64_t value_uj, added;
    int err = rapl_read_number(domain->fd, &value_uj);
    int64_t now_ns = hec_clock_mono_ns(); /* of the reading itself: the value goes with this instant */
    if (err) {
        self->sink->missing(self->sink->context, domain->metric, domain->zone.index, now_ns);
        if (!domain->failed) {
            char text[300];
            snprintf(text, sizeof text, "RAPL %s: %s: %s", domain->zone.name, domain->zone.path, hec_err_text(err));
            report(self, HEC_EVENT_SENSOR_FAILED, now_ns, text);
        }
        domain->failed = true;
        return;
    }
    domain->failed = false;
    if (domain->last_ns == 0) {
        domain->total_uj = value_uj;
    } else if (added_uj(domain, value_uj, now_ns - domain->last_ns, &added)) {
        domain->total_uj += added;
    } else {
        lose(self, domain, value_uj, now_ns);
        self->sink->missing(self->sink->context, domain->metric, domain->zone.index, now_ns);
        domain->last_uj = value_uj;
        domain->last_ns = now_ns;
        return;
    }
    domain->last_uj = value_uj;
    domain->last_ns = now_ns;
    self->sink->sample(self->sink->context, domain->metric, domain->zone.index, now_ns, domain->total_uj);
}

static void read_all(struct rapl *self) {
    for (int i = 0; i < self->count; i++)
        read_domain(self, &self->domains[i]);
}

static int64_t rapl_poll(void *context, int64_t now_ns) {
    struct rapl *self = context;
    if (now_ns < self->next_ns)
        return self->next_ns;
    read_all(self);
    self->next_ns = now_ns + self->period_ns;
    return self->next_ns;
}

static void rapl_finish(void *context, int64_t end_ns) {
    (void)end_ns; /* the last reading is after the end: both sides of it are known, so it can be interpolated */
    read_all(context);
}

static void rapl_close(void *context) {
    struct rapl *self = context;
    for (int i = 0; i < self->count; i++)
        close(self->domains[i].fd);
    free(self);
}

/* A quarter of the time in which the zone can wrap, so that added_uj never has to doubt. */
static void adapt_period(struct rapl *self, const struct domain *domain) {
    if (domain->zone.range_uj <= 0)
        return;
    double quarter_ns = (double)domain->zone.range_uj / most_uj(domain, 0) * 1e7 / 4;
    if (quarter_ns < (double)self->period_ns)
        self->period_ns = quarter_ns > (double)PERIOD_MIN_NS ? (int64_t)quarter_ns : PERIOD_MIN_NS;
}

static bool add_domain(struct rapl *self, const struct rapl_zone *zone) {
    struct domain *domain = &self->domains[self->count];
    memset(domain, 0, sizeof *domain);
    domain->zone = *zone;
    domain->metric = zone->kind == RAPL_DRAM ? HEC_RAPL_DRAM_ENERGY : HEC_RAPL_PACKAGE_ENERGY;
    domain->fd = open(zone->path, O_RDONLY | O_CLOEXEC);
    if (domain->fd < 0)
        return false;
    self->count++;
    adapt_period(self, domain);
    return true;
}

static const char *powercap_of(const struct hec_observe_options *options) {
    return options->powercap_path ? options->powercap_path : "/sys/class/powercap";
}

static int rapl_open(const struct hec_observe_options *options, const struct hec_sink *sink, void **out,
                     struct hec_why *why) {
    const char *path = powercap_of(options);
    struct rapl_zone zones[RAPL_ZONES_MAX];
    *out = NULL;
    int count = rapl_zones(path, zones);
    if (count < 0)
        return hec_fail(why, count, "%s cannot be listed: %s", path, hec_err_text(count));
    struct rapl *self = calloc(1, sizeof *self);
    if (!self)
        return hec_fail(why, HEC_ERR_NOMEM, "out of memory");
    self->sink = sink;
    self->period_ns = options->interval_ns ? options->interval_ns : PERIOD_NS;
    int packages = 0, drams = 0, dram_zones = 0;
    const struct rapl_zone *denied = NULL, *failed = NULL;
    for (int i = 0; i < count; i++) {
        if (zones[i].kind != RAPL_PACKAGE && zones[i].kind != RAPL_DRAM)
            continue; /* psys holds the packages, cores are part of one: adding them would count twice */
        dram_zones += zones[i].kind == RAPL_DRAM;
        if (zones[i].error == HEC_OK && add_domain(self, &zones[i]))
            *(zones[i].kind == RAPL_DRAM ? &drams : &packages) += 1;
        else if (zones[i].error == HEC_ERR_PERMISSION)
            denied = denied ? denied : &zones[i];
        else
            failed = failed ? failed : &zones[i];
    }
    int err = packages + drams > 0 ? HEC_OK : HEC_ERR_UNSUPPORTED;
    if (err && denied)
        err = hec_fail(why, HEC_ERR_PERMISSION, "needs read permission on %s: run as root or grant it by a udev rule",
                       denied->path);
    else if (err && failed)
        err = hec_fail(why, HEC_ERR_IO, "%s cannot be read", failed->path);
    else if (err)
        hec_fail(why, err, "no RAPL here (virtual machine or unsupported CPU)");
    if (err) {
        rapl_close(self);
        return err;
    }
    read_all(self); /* the first reading is before the window, the last after it */
    int64_t now_ns = hec_clock_mono_ns();
    self->next_ns = now_ns + self->period_ns;
    if (denied || failed) {
        char text[300];
        const struct rapl_zone *zone = denied ? denied : failed;
        snprintf(text, sizeof text, "RAPL %s: %s cannot be read: %s", zone->name, zone->path,
                 denied ? "permission denied" : "it failed");
        report(self, HEC_EVENT_SOURCE_UNAVAILABLE, now_ns, text);
    }
    if (dram_zones == 0)
        report(self, HEC_EVENT_SOURCE_UNAVAILABLE, now_ns, "DRAM energy: this CPU has no RAPL domain for it");
    *out = self;
    return HEC_OK;
}

/* ---- what hec doctor shows ---- */

/* x86 hypervisors set the flag of this name; anything else counts as not virtual. */
static bool is_virtual(const char *proc_path) {
    char path[512], text[16384];
    snprintf(path, sizeof path, "%s/cpuinfo", proc_path ? proc_path : "/proc");
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    text[length > 0 ? length : 0] = '\0';
    return strstr(text, " hypervisor") != NULL;
}

static void check_zone(const struct rapl_zone *zone, struct hec_check_list *list) {
    char name[48];
    snprintf(name, sizeof name, "%s%s", zone->name, zone->kind == RAPL_DRAM ? " (memory)" : "");
    if (zone->error == HEC_ERR_PERMISSION) {
        struct hec_check *check =
            hec_check_add(list, AREA, name, HEC_CHECK_MISSING, "needs read permission on %s", zone->path);
        snprintf(check->remedy, sizeof check->remedy,
                 "run as root, or a udev rule that makes energy_uj readable to a group you trust (kernels keep it from "
                 "users because it leaks what others compute)");
        return;
    }
    int64_t value;
    int fd = open(zone->path, O_RDONLY | O_CLOEXEC);
    int64_t start_ns = hec_clock_mono_ns();
    int err = fd < 0 ? HEC_ERR_IO : rapl_read_number(fd, &value);
    int64_t cost_ns = hec_clock_mono_ns() - start_ns;
    if (fd >= 0)
        close(fd);
    if (err) {
        hec_check_add(list, AREA, name, HEC_CHECK_MISSING, "%s cannot be read: %s", zone->path, hec_err_text(err));
        return;
    }
    struct hec_check *check;
    if (zone->range_uj > 0)
        check = hec_check_add(list, AREA, name, HEC_CHECK_OK, "read once a second; the counter wraps after %.0f kJ",
                              (double)zone->range_uj / 1e9);
    else
        check = hec_check_add(
            list, AREA, name, HEC_CHECK_LIMITED,
            "read, but the kernel does not say where the counter wraps: a wrap would be taken for a reset");
    snprintf(check->cost, sizeof check->cost, "%.0f us a reading here", (double)cost_ns / 1e3);
}

static void rapl_check(const struct hec_observe_options *options, struct hec_check_list *list) {
    struct rapl_zone zones[RAPL_ZONES_MAX];
    int count = rapl_zones(powercap_of(options), zones);
    int packages = 0, drams = 0;
    for (int i = 0; i < count; i++) {
        if (zones[i].kind == RAPL_PACKAGE || zones[i].kind == RAPL_DRAM) {
            check_zone(&zones[i], list);
            *(zones[i].kind == RAPL_DRAM ? &drams : &packages) += 1;
        }
    }
    if (packages + drams == 0) {
        bool virtual = is_virtual(options->proc_path);
        struct hec_check *check = hec_check_add(list, AREA, "package", HEC_CHECK_MISSING, "no RAPL here (%s)",
                                                virtual ? "virtual machine: the hypervisor does not pass it on"
                                                        : "unsupported CPU, or its kernel module is not loaded");
        if (!virtual)
            snprintf(check->remedy, sizeof check->remedy, "modprobe intel_rapl_msr (Intel and AMD), if the CPU has it");
        return;
    }
    if (drams == 0)
        hec_check_add(list, AREA, "dram (memory)", HEC_CHECK_MISSING, "this CPU has no RAPL domain for memory");
    for (int i = 0; i < count; i++)
        if (zones[i].kind == RAPL_PLATFORM)
            hec_check_add(list, AREA, zones[i].name, HEC_CHECK_OK,
                          "there, and not recorded: it includes the packages, which would be counted twice");
}

const struct hec_collector hec_collector_rapl = {
    .name = "rapl",
    .lane = HEC_LANE_HOST,
    .open = rapl_open,
    .poll = rapl_poll,
    .finish = rapl_finish,
    .close = rapl_close,
    .check = rapl_check,
};
