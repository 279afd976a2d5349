#include "observe/rapl/zone.h"

#include "base/error.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int hec_rapl_read_number(int fd, int64_t *out) {
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

static enum hec_rapl_kind kind_of(const char *name) {
    if (strncmp(name, "package", 7) == 0)
        return HEC_RAPL_PACKAGE;
    if (strcmp(name, "dram") == 0)
        return HEC_RAPL_DRAM;
    if (strcmp(name, "psys") == 0)
        return HEC_RAPL_PLATFORM;
    return HEC_RAPL_PART;
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
    const struct hec_rapl_zone *x = a, *y = b;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

int hec_rapl_zones(const char *path, struct hec_rapl_zone zones[HEC_RAPL_ZONES_MAX]) {
    DIR *dir = opendir(path);
    if (!dir)
        return errno == ENOENT ? 0 : hec_err_from_errno(errno);
    int count = 0;
    const struct dirent *entry;
    while (count < HEC_RAPL_ZONES_MAX && (entry = readdir(dir))) {
        struct hec_rapl_zone *zone = &zones[count];
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
