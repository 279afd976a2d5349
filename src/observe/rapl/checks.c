#include "observe/rapl/checks.h"

#include "base/clock.h"
#include "base/error.h"
#include "observe/rapl/zone.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define AREA "cpu energy"

/* x86 hypervisors set the flag of this name; anything else counts as not virtual. */
static bool is_virtual(const char *cpuinfo_path) {
    char text[16384];
    int fd = open(cpuinfo_path ? cpuinfo_path : "/proc/cpuinfo", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    text[length > 0 ? length : 0] = '\0';
    return strstr(text, " hypervisor") != NULL;
}

static void check_zone(const struct hec_rapl_zone *zone, struct hec_check_list *list) {
    char name[48];
    snprintf(name, sizeof name, "%s%s", zone->name, zone->kind == HEC_RAPL_DRAM ? " (memory)" : "");
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
    int err = fd < 0 ? HEC_ERR_IO : hec_rapl_read_number(fd, &value);
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

void hec_rapl_check(const char *powercap_path, const char *cpuinfo_path, struct hec_check_list *list) {
    struct hec_rapl_zone zones[HEC_RAPL_ZONES_MAX];
    const char *path = powercap_path ? powercap_path : "/sys/class/powercap";
    int count = hec_rapl_zones(path, zones);
    int packages = 0, drams = 0;
    for (int i = 0; i < count; i++) {
        if (zones[i].kind == HEC_RAPL_PACKAGE || zones[i].kind == HEC_RAPL_DRAM) {
            check_zone(&zones[i], list);
            *(zones[i].kind == HEC_RAPL_DRAM ? &drams : &packages) += 1;
        }
    }
    if (packages + drams == 0) {
        bool virtual = is_virtual(cpuinfo_path);
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
        if (zones[i].kind == HEC_RAPL_PLATFORM)
            hec_check_add(list, AREA, zones[i].name, HEC_CHECK_OK,
                          "there, and not recorded: it includes the packages, which would be counted twice");
}
