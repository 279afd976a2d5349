#include "report/run/devices.h"

#include "report/format.h"
#include "report/json_print.h"
#include "report/json_values.h"
#include "report/page.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- JSON ---- */

static json_t *known(int64_t value, double scale) { /* negative: the driver would not say */
    return value < 0 ? json_null() : json_real((double)value * scale);
}

static void set(json_t *object, const char *key, json_t *value) {
    json_object_set_new(object, key, value);
}

static json_t *device_of(const struct hec_device *device) {
    const struct hec_part *part = hec_part_find(device->name);
    char capability[24];
    snprintf(capability, sizeof capability, "%d.%d", device->cuda_major, device->cuda_minor);
    return json_pack(
        "{s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:s?, s:o, s:o, s:o, s:o, s:o, s:b, s:b, s:b, s:b, s:b, s:s?}", "index",
        device->index, "vendor", of_TEXT(device->vendor), "uuid", of_TEXT(device->uuid), "name", of_TEXT(device->name),
        "pci_bus_id", of_TEXT(device->pci_bus_id), "driver", of_TEXT(device->driver), "architecture",
        of_TEXT(device->architecture), "compute_capability", device->cuda_major > 0 ? capability : NULL, "memory_bytes",
        known(device->memory_kib, 1024), "power_limit_w", known(device->power_limit_mw, 1e-3), "power_limit_default_w",
        known(device->power_limit_default_mw, 1e-3), "pcie_bytes_per_s", known(device->pcie_kib_per_s, 1024),
        "mig_enabled", of_MAYBE(device->mig_enabled), "visible", device->visible, "simulated", device->simulated,
        "energy_counter", device->has_energy_counter, "power_history", device->has_power_history, "gpm",
        device->has_gpm, "part", part ? part->id : NULL);
}

static json_t *part_of(const struct hec_part *part) {
    json_t *peak = json_object(), *per_joule = json_object();
    for (enum hec_precision p = 0; p < HEC_PRECISION_COUNT; p++) {
        set(peak, hec_precision_name(p), of_NUMBER(part->peak_tflops[p]));
        set(per_joule, hec_precision_name(p), of_NUMBER(hec_part_flop_per_joule(part, p)));
    }
    return json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:s, s:o}", "id", part->id, "name", part->name,
                     "workload", hec_part_class_name(part->workload), "peak_dense_tflops", peak,
                     "flop_per_joule_derived", per_joule, "memory_gb_per_s", of_NUMBER(part->memory_gb_per_s),
                     "memory_gb", of_NUMBER(part->memory_gb), "tdp_w", of_NUMBER(part->tdp_w), "source", part->source,
                     "note", of_TEXT(part->note));
}

static int print_json(const struct hec_device *devices, int count, bool parts, struct hec_buf *out) {
    json_t *root = json_object(), *list = json_array();
    set(root, "schema", json_string(HEC_DEVICES_SCHEMA));
    for (int i = 0; i < count; i++)
        json_array_append_new(list, device_of(&devices[i]));
    set(root, "devices", list);
    if (parts) {
        json_t *table = json_array();
        for (int i = 0; i < hec_part_count(); i++)
            json_array_append_new(table, part_of(hec_part_at(i)));
        set(root, "parts", table);
    }
    return hec_json_print(root, out);
}

/* ---- terminal ---- */

static void print_device(struct hec_page *page, const struct hec_device *device) {
    char gpu[HEC_FORMAT_SIZE], memory[HEC_FORMAT_SIZE] = "memory unknown",
                               limit[HEC_FORMAT_SIZE] = "power limit unknown";
    char bandwidth[HEC_FORMAT_SIZE], peak[HEC_FORMAT_SIZE] = "unknown", capability[40] = "";
    const struct hec_part *part = hec_part_find(device->name);
    hec_page_row(page, 0, hec_format_gpu(gpu, device->index), HEC_TONE_BOLD, "%s%s%s",
                 device->name[0] ? device->name : "unknown", device->simulated ? " (simulated)" : "",
                 device->visible ? "" : " (hidden by CUDA_VISIBLE_DEVICES)");
    hec_page_row(page, 0, "", HEC_TONE_PLAIN, "%s, PCI %s, driver %s", device->uuid[0] ? device->uuid : "UUID unknown",
                 device->pci_bus_id[0] ? device->pci_bus_id : "unknown",
                 device->driver[0] ? device->driver : "unknown");
    if (device->memory_kib >= 0)
        hec_format_bytes(memory, (double)device->memory_kib * 1024, "");
    if (device->power_limit_mw >= 0)
        snprintf(limit, sizeof limit, "power limit %.0f W", (double)device->power_limit_mw / 1e3);
    if (device->cuda_major > 0)
        snprintf(capability, sizeof capability, ", compute capability %d.%d", device->cuda_major, device->cuda_minor);
    hec_page_row(page, 0, "", HEC_TONE_PLAIN, "%s, %s%s%s%s", memory, limit, capability,
                 device->architecture[0] ? ", " : "", device->architecture);
    hec_page_row(page, 0, "", HEC_TONE_PLAIN, "energy counter %s, power history %s, hardware counters (GPM) %s%s",
                 device->has_energy_counter ? "yes" : "no", device->has_power_history ? "yes" : "no",
                 device->has_gpm ? "yes" : "no", device->mig_enabled > 0 ? ", MIG enabled" : "");
    if (!part) {
        hec_page_row(page, 0, "", HEC_TONE_DIM, "not in the table of known parts");
        return;
    }
    if (isfinite(part->peak_tflops[HEC_PRECISION_FP16]))
        snprintf(peak, sizeof peak, "%.4g TFLOP/s", part->peak_tflops[HEC_PRECISION_FP16]);
    hec_page_row(page, 0, "", HEC_TONE_DIM, "part %s: peak FP16 %s, memory %s, %.0f W (%s)", part->name, peak,
                 hec_format_bytes(bandwidth, part->memory_gb_per_s * 1e9, "/s"), part->tdp_w, part->source);
}

static void cell(struct hec_buf *out, int width, double value, int decimals) {
    if (isnan(value))
        hec_buf_printf(out, "%*s", width, "?");
    else if (value == 0)
        hec_buf_printf(out, "%*s", width, "-");
    else
        hec_buf_printf(out, "%*.*f", width, value >= 1000 ? 0 : decimals, value);
}

static bool present(const struct hec_part *part, const struct hec_device *devices, int count) {
    for (int i = 0; i < count; i++)
        if (hec_part_find(devices[i].name) == part)
            return true;
    return false;
}

/* Parts share sources: a letter in the row leads to a list with each source once. */
struct source_list {
    const char *items[26];
    int count;
};

static char letter_of(struct source_list *sources, const char *source) {
    int i = 0;
    while (i < sources->count && strcmp(sources->items[i], source) != 0)
        i++;
    if (i == (int)(sizeof sources->items / sizeof sources->items[0]))
        return '?'; /* more sources than letters: a test counts them */
    if (i == sources->count)
        sources->items[sources->count++] = source;
    return (char)('a' + i);
}

static void print_row(struct hec_buf *out, const struct hec_part *part, bool here, char source) {
    static const enum hec_precision shown[] = {HEC_PRECISION_FP64, HEC_PRECISION_FP32, HEC_PRECISION_TF32,
                                               HEC_PRECISION_FP16, HEC_PRECISION_FP8,  HEC_PRECISION_FP4};
    hec_buf_printf(out, "%s%-21s", here ? "*" : " ", part->name);
    for (size_t i = 0; i < sizeof shown / sizeof shown[0]; i++)
        cell(out, 6, part->peak_tflops[shown[i]], part->peak_tflops[shown[i]] >= 100 ? 0 : 1);
    cell(out, 5, part->memory_gb_per_s, 0);
    cell(out, 4, part->memory_gb, 0);
    cell(out, 5, part->tdp_w, 0);
    cell(out, 5, hec_part_flop_per_joule(part, HEC_PRECISION_FP16) / 1e12, 2);
    hec_buf_printf(out, " %c\n", source);
}

static void print_notes(struct hec_page *page) {
    for (int i = 0, row = 0; i < hec_part_count(); i++) {
        const char *note = hec_part_at(i)->note;
        int first = 0;
        while (strcmp(hec_part_at(first)->note, note) != 0)
            first++;
        if (!note[0] || first != i)
            continue;
        char names[256];
        size_t used = 0;
        for (int j = i; j < hec_part_count() && used < sizeof names - 64; j++)
            if (strcmp(hec_part_at(j)->note, note) == 0)
                used +=
                    (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", hec_part_at(j)->name);
        hec_page_row(page, 0, row++ == 0 ? "notes" : "", HEC_TONE_DIM, "%s: %s", names, note);
    }
}

static void print_parts(struct hec_page *page, const struct hec_device *devices, int count) {
    struct source_list sources = {.count = 0};
    bool any_here = false;
    hec_page_row(
        page, 0, "known parts", HEC_TONE_PLAIN,
        "the vendors' figures, not measurements: peak TFLOP/s, dense (no sparsity; tensor peaks that a vendor "
        "prints with 2:4 sparsity only were halved); FP64 and FP32 are the vector pipes. TF/J is derived: peak "
        "FP16 FLOP/s divided by the maximum power, that is TFLOP per joule. -: no such unit, ?: not confirmed. "
        "The letter is the source, below.");
    for (int c = 0; c < HEC_PART_CLASS_COUNT; c++) {
        hec_page_blank(page);
        hec_buf_printf(page->out, " %-21s%6s%6s%6s%6s%6s%6s%5s%4s%5s%5s\n", hec_part_class_name((enum hec_part_class)c),
                       "FP64", "FP32", "TF32", "FP16", "FP8", "FP4", "GB/s", "GB", "W", "TF/J");
        page->lines++;
        for (int i = 0; i < hec_part_count(); i++) {
            const struct hec_part *part = hec_part_at(i);
            if ((int)part->workload != c)
                continue;
            bool here = present(part, devices, count);
            any_here |= here;
            print_row(page->out, part, here, letter_of(&sources, part->source));
            page->lines++;
        }
    }
    hec_page_blank(page);
    if (any_here)
        hec_page_row(page, 0, "*", HEC_TONE_DIM, "in this machine");
    for (int i = 0; i < sources.count; i++)
        hec_page_row(page, 0, i == 0 ? "sources" : "", HEC_TONE_DIM, "%c %s", 'a' + i, sources.items[i]);
    print_notes(page);
}

int hec_report_devices(const struct hec_device *devices, int count, bool parts, bool json,
                       const struct hec_report_style *style, struct hec_buf *out) {
    if (json)
        return print_json(devices, count, parts, out);
    struct hec_page page;
    hec_page_init(&page, style, out);
    for (int i = 0; i < count; i++)
        print_device(&page, &devices[i]);
    if (count == 0)
        hec_page_row(&page, 0, "GPU", HEC_TONE_WARN, "none found");
    if (parts) {
        hec_page_blank(&page);
        print_parts(&page, devices, count);
    }
    return hec_buf_error(out);
}

/* ---- hec doctor ---- */

static void count_by_status(const struct hec_check_list *list, int counts[HEC_CHECK_STATUS_COUNT]) {
    memset(counts, 0, HEC_CHECK_STATUS_COUNT * sizeof *counts);
    for (int i = 0; i < list->count; i++)
        counts[list->items[i].status]++;
}

static int print_checks_json(const struct hec_check_list *list, struct hec_buf *out) {
    int counts[HEC_CHECK_STATUS_COUNT];
    json_t *root = json_object(), *checks = json_array();
    set(root, "schema", json_string(HEC_DOCTOR_SCHEMA));
    for (int i = 0; i < list->count; i++) {
        const struct hec_check *check = &list->items[i];
        json_array_append_new(checks,
                              json_pack("{s:o, s:o, s:s, s:o, s:o, s:o}", "area", of_STRING(check->area), "name",
                                        of_STRING(check->name), "status", hec_check_status_name(check->status),
                                        "finding", of_STRING(check->finding), "remedy", of_TEXT(check->remedy), "cost",
                                        of_TEXT(check->cost)));
    }
    set(root, "checks", checks);
    count_by_status(list, counts);
    for (int s = 0; s < HEC_CHECK_STATUS_COUNT; s++)
        set(root, hec_check_status_name((enum hec_check_status)s), json_integer(counts[s]));
    set(root, "omitted", json_integer(list->omitted));
    return hec_json_print(root, out);
}

static void print_area(struct hec_page *page, const struct hec_check_list *list, const char *area) {
    static const enum hec_tone tones[HEC_CHECK_STATUS_COUNT] = {HEC_TONE_PLAIN, HEC_TONE_WARN, HEC_TONE_BAD};
    hec_page_row(page, 0, area, HEC_TONE_PLAIN, "%s", "");
    for (int i = 0; i < list->count; i++) {
        const struct hec_check *check = &list->items[i];
        if (strcmp(check->area, area) != 0)
            continue;
        hec_page_row(page, 2, hec_check_status_name(check->status), tones[check->status], "%s: %s", check->name,
                     check->finding);
        if (check->remedy[0])
            hec_page_row(page, 2, "", HEC_TONE_PLAIN, "to enable it: %s", check->remedy);
        if (check->cost[0])
            hec_page_row(page, 2, "", HEC_TONE_DIM, "cost: %s", check->cost);
    }
}

int hec_report_doctor(const struct hec_check_list *list, bool json, const struct hec_report_style *style,
                      struct hec_buf *out) {
    if (json)
        return print_checks_json(list, out);
    struct hec_page page;
    int counts[HEC_CHECK_STATUS_COUNT];
    hec_page_init(&page, style, out);
    for (int i = 0; i < list->count; i++) {
        int first = 0;
        while (strcmp(list->items[first].area, list->items[i].area) != 0)
            first++;
        if (first == i) {
            print_area(&page, list, list->items[i].area);
            hec_page_blank(&page);
        }
    }
    count_by_status(list, counts);
    hec_page_row(&page, 0, "in all", HEC_TONE_BOLD, "%d ok, %d limited, %d missing", counts[HEC_CHECK_OK],
                 counts[HEC_CHECK_LIMITED], counts[HEC_CHECK_MISSING]);
    if (list->omitted > 0)
        hec_page_row(&page, 0, "", HEC_TONE_DIM, "%d more rows did not fit", list->omitted);
    return hec_buf_error(out);
}
