#include "act/power_device.h"

#include "model/throttle.h"
#include "observe/nvml/visible.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void hec_power_value_words(enum hec_power_knob knob, int64_t value, char words[32]) {
    if (knob == HEC_POWER_CAP)
        snprintf(words, 32, "%.10g W", (double)value / 1000);
    else if (value > 0)
        snprintf(words, 32, "%lld MHz", (long long)value);
    else
        snprintf(words, 32, "no lock");
}

static int failed(const char *what, int code, struct hec_why *why) {
    return hec_fail(why, hec_nvml_error(code), "%s: %s", what, hec_nvml_code_text(code));
}

/* ---- the machine ---- */

static void read_boot(char boot[64]) {
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? 0 : read(fd, boot, 63);
    boot[length > 0 ? length : 0] = '\0';
    boot[strcspn(boot, "\n")] = '\0';
    if (fd >= 0)
        close(fd);
}

static int find_simulated(const char *spec, struct hec_power_machine *machine, struct hec_why *why) {
    int err = hec_simulation_begin(spec, &machine->simulation, why);
    if (err < 0)
        return err;
    snprintf(machine->boot, sizeof machine->boot, "%s", hec_simulation_boot(machine->simulation));
    err = hec_simulation_spec(machine->simulation, machine->name);
    return err < 0 ? hec_fail(why, HEC_ERR_FAILED, "the simulated machine keeps no limits") : HEC_OK;
}

int hec_power_machine_open(const char *spec, struct hec_power_machine *machine, struct hec_why *why) {
    *machine = (struct hec_power_machine){.simulated = spec != NULL};
    int err = spec ? find_simulated(spec, machine, why) : HEC_OK;
    if (err == HEC_OK)
        err = hec_nvml_load(spec ? hec_simulation_nvml(machine->simulation) : NULL, &machine->nvml, why);
    if (err == HEC_OK) {
        int code = machine->nvml.init();
        machine->initialised = code == HEC_NVML_SUCCESS;
        err = machine->initialised ? HEC_OK : failed("NVML cannot be used", code, why);
    }
    if (err < 0) {
        hec_power_machine_close(machine);
        return err;
    }
    if (!spec)
        read_boot(machine->boot);
    machine->simulated = machine->nvml.simulated != NULL;
    if (machine->nvml.driver_version)
        machine->nvml.driver_version(machine->driver, sizeof machine->driver);
    return HEC_OK;
}

void hec_power_machine_close(struct hec_power_machine *machine) {
    if (machine->initialised && machine->nvml.shutdown)
        machine->nvml.shutdown();
    if (machine->nvml.library)
        hec_nvml_unload(&machine->nvml);
    hec_simulation_end(machine->simulation);
    *machine = (struct hec_power_machine){0};
}

static int list(const struct hec_power_machine *machine, struct hec_power_device *devices, struct hec_why *why) {
    const struct hec_nvml *nvml = &machine->nvml;
    unsigned count = 0;
    int code = nvml->device_count(&count);
    if (code != HEC_NVML_SUCCESS)
        return failed("the devices cannot be counted", code, why);
    count = count > HEC_POWER_DEVICES ? HEC_POWER_DEVICES : count;
    for (unsigned i = 0; i < count; i++) {
        struct hec_power_device *device = &devices[i];
        *device = (struct hec_power_device){0};
        if (nvml->device_by_index(i, &device->handle) != HEC_NVML_SUCCESS)
            continue; /* lost: nothing of it is asked for */
        if (nvml->device_uuid)
            nvml->device_uuid(device->handle, device->uuid, sizeof device->uuid);
        nvml->device_name(device->handle, device->name, sizeof device->name);
    }
    return (int)count;
}

int hec_power_devices(const struct hec_power_machine *machine, const char *visible, struct hec_power_device *devices,
                      struct hec_why *why) {
    char uuids[HEC_POWER_DEVICES][96];
    bool chosen[HEC_POWER_DEVICES], by_ordinal, same_model = true;
    int found = 0, count = list(machine, devices, why);
    if (count < 0)
        return count;
    for (int i = 0; i < count; i++) {
        memcpy(uuids[i], devices[i].uuid, sizeof uuids[i]);
        same_model = same_model && strcmp(devices[i].name, devices[0].name) == 0;
    }
    const char *order = getenv("CUDA_DEVICE_ORDER");
    hec_visible_parse(&(struct hec_visible_input){.text = visible, .uuids = uuids, .count = count}, chosen,
                      &by_ordinal);
    if (by_ordinal && !same_model && !(order && strcmp(order, "PCI_BUS_ID") == 0))
        return hec_fail(
            why, HEC_ERR_USAGE,
            "CUDA_VISIBLE_DEVICES=%.60s means other devices to CUDA than to the driver where they differ: set "
            "CUDA_DEVICE_ORDER=PCI_BUS_ID, or name them by UUID",
            visible);
    for (int i = 0; i < count; i++)
        if (chosen[i])
            devices[found++] = devices[i];
    return found ? found : hec_fail(why, HEC_ERR_NOTFOUND, "no GPU whose limits could be set");
}

int hec_power_device_find(const struct hec_power_machine *machine, const char *uuid, struct hec_power_device *device,
                          struct hec_why *why) {
    struct hec_power_device devices[HEC_POWER_DEVICES];
    int count = list(machine, devices, why);
    for (int i = 0; i < count; i++)
        if (strcmp(devices[i].uuid, uuid) == 0) {
            *device = devices[i];
            return HEC_OK;
        }
    return count < 0 ? count : hec_fail(why, HEC_ERR_NOTFOUND, "there is no device %s now", uuid);
}

/* ---- one device ---- */

static int unsupported(const struct hec_power_device *device, const char *what, struct hec_why *why) {
    return hec_fail(why, HEC_ERR_UNSUPPORTED, "the driver of the %s cannot %s", device->name, what);
}

int hec_power_device_range(const struct hec_power_machine *machine, const struct hec_power_device *device,
                           enum hec_power_knob knob, int64_t *from, int64_t *to, struct hec_why *why) {
    const struct hec_nvml *nvml = &machine->nvml;
    unsigned least = 1, most = 0;
    if (knob == HEC_POWER_CAP ? !nvml->power_limit_range || !nvml->power_limit || !nvml->power_limit_set
                              : !nvml->clock_max || !nvml->clocks_lock || !nvml->clocks_unlock)
        return unsupported(device, knob == HEC_POWER_CAP ? "set power limits" : "lock clocks", why);
    int code = knob == HEC_POWER_CAP ? nvml->power_limit_range(device->handle, &least, &most)
                                     : nvml->clock_max(device->handle, HEC_NVML_CLOCK_SM, &most);
    *from = least;
    *to = most;
    return code == HEC_NVML_SUCCESS ? HEC_OK : failed(device->name, code, why);
}

int hec_power_device_check(const struct hec_power_machine *machine, const struct hec_power_device *device,
                           enum hec_power_knob knob, int64_t value, struct hec_why *why) {
    int64_t least = 0, most = 0;
    int err = hec_power_device_range(machine, device, knob, &least, &most, why);
    if (err < 0 || (value >= least && value <= most))
        return err;
    char asked[32], low[32], high[32];
    hec_power_value_words(knob, value, asked);
    hec_power_value_words(knob, least, low);
    hec_power_value_words(knob, most, high);
    return hec_fail(why, HEC_ERR_USAGE, "%s: the %s takes %s to %s", asked, device->name, low, high);
}

static int read_cap(const struct hec_nvml *nvml, const struct hec_power_device *device, int64_t *value,
                    struct hec_why *why) {
    unsigned mw = 0;
    if (!nvml->power_limit)
        return unsupported(device, "read power limits", why);
    int code = nvml->power_limit(device->handle, &mw);
    *value = mw;
    return code == HEC_NVML_SUCCESS && mw > 0 ? HEC_OK : failed("the power limit cannot be read", code, why);
}

int hec_power_device_read(const struct hec_power_machine *machine, const struct hec_power_device *device,
                          enum hec_power_knob knob, int64_t *value, struct hec_why *why) {
    unsigned long long reasons = 0;
    if (knob == HEC_POWER_CAP)
        return read_cap(&machine->nvml, device, value, why);
    if (!machine->nvml.clocks_event_reasons)
        return unsupported(device, "say whether its clocks are limited", why);
    int code = machine->nvml.clocks_event_reasons(device->handle, &reasons);
    *value = (hec_nvml_throttle(reasons) & HEC_THROTTLED_SETTING) != 0;
    return code == HEC_NVML_SUCCESS ? HEC_OK : failed("why the clocks are limited cannot be read", code, why);
}

static int write_code(const struct hec_nvml *nvml, const struct hec_power_device *device, enum hec_power_knob knob,
                      int64_t value) {
    if (knob == HEC_POWER_CAP)
        return nvml->power_limit_set ? nvml->power_limit_set(device->handle, (unsigned)value)
                                     : HEC_NVML_FUNCTION_NOT_FOUND;
    if (!nvml->clocks_lock || !nvml->clocks_unlock)
        return HEC_NVML_FUNCTION_NOT_FOUND;
    return value > 0 ? nvml->clocks_lock(device->handle, (unsigned)value, (unsigned)value)
                     : nvml->clocks_unlock(device->handle);
}

int hec_power_device_write(const struct hec_power_machine *machine, const struct hec_power_device *device,
                           enum hec_power_knob knob, int64_t value, bool enforced, struct hec_why *why) {
    int64_t now = 0;
    unsigned holds = 0;
    char asked[32], found[32];
    hec_power_value_words(knob, value, asked);
    int code = write_code(&machine->nvml, device, knob, value);
    if (code == HEC_NVML_NO_PERMISSION)
        return hec_fail(why, HEC_ERR_PERMISSION,
                        "the driver lets only the administrator change limits of the %s: run hec as root",
                        device->name);
    if (code != HEC_NVML_SUCCESS)
        return hec_fail(why, hec_nvml_error(code), "the %s does not take %s: %s", device->name, asked,
                        hec_nvml_code_text(code));
    int err = hec_power_device_read(machine, device, knob, &now, why);
    if (err < 0 || knob == HEC_POWER_CLOCK) /* whether a lock acts only shows under load */
        return err;
    hec_power_value_words(knob, now, found);
    if (now != value)
        return hec_fail(why, HEC_ERR_FAILED, "the %s was set to %s, and says %s", device->name, asked, found);
    if (!enforced)
        return HEC_OK;
    if (!machine->nvml.power_limit_enforced)
        return unsupported(device, "say which power limit holds", why);
    code = machine->nvml.power_limit_enforced(device->handle, &holds);
    if (code != HEC_NVML_SUCCESS)
        return failed("the power limit that holds cannot be read", code, why);
    hec_power_value_words(knob, holds, found);
    return holds == value
               ? HEC_OK
               : hec_fail(why, HEC_ERR_FAILED, "a limit from outside the driver holds the %s at %s, not at %s",
                          device->name, found, asked);
}
