#include "report/export/names.h"

#include "base/text.h"
#include "diagnose/timeline/kernel_name.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Name ids: fixed ones by kind, copies by memory, then names as text, names as kernels, frames. */
#define FIXED 16
_Static_assert(HEC_ACTIVITY_KIND_COUNT < HEC_EXPORT_NAME_LAUNCH && HEC_EXPORT_NAME_LAUNCH < FIXED, "kinds are below");
#define FIXED_END (FIXED + HEC_MEMORY_KIND_COUNT * HEC_MEMORY_KIND_COUNT * 2 + HEC_SYNC_TYPE_COUNT)

int hec_export_tables_load(const struct hec_timeline_input *input, struct hec_export_tables *tables,
                           struct hec_why *why) {
    memset(tables, 0, sizeof *tables);
    int err = hec_timeline_tables_load(input, &tables->timeline, why);
    if (!err && !(tables->readable = calloc(tables->timeline.name_count + 1, sizeof(char *)))) {
        hec_export_tables_free(tables);
        err = HEC_ERR_NOMEM;
    }
    return err;
}

void hec_export_tables_free(struct hec_export_tables *tables) {
    for (size_t i = 0; tables->readable && i < tables->timeline.name_count; i++)
        free(tables->readable[i]);
    free(tables->readable);
    hec_timeline_tables_free(&tables->timeline);
    memset(tables, 0, sizeof *tables);
}

static uint8_t memory(uint8_t kind) {
    return kind < HEC_MEMORY_KIND_COUNT ? kind : HEC_MEMORY_UNKNOWN;
}

static bool has_name(const struct hec_export_tables *tables, uint32_t id) {
    return hec_timeline_name(&tables->timeline, id)[0] != '\0';
}

uint64_t hec_export_name_count(const struct hec_export_tables *tables) {
    return FIXED_END + 2 * (uint64_t)tables->timeline.name_count + tables->timeline.frame_count;
}

uint64_t hec_export_name_id(const struct hec_export_tables *tables, const struct hec_activity *a) {
    uint64_t names = tables->timeline.name_count;
    uint32_t name = a->name;
    switch (a->kind) {
    case HEC_ACTIVITY_KERNEL:
        name = hec_timeline_kernel_name(&tables->timeline, a->name);
        return has_name(tables, name) ? FIXED_END + names + name : 1u + a->kind;
    case HEC_ACTIVITY_COPY: {
        bool peer = (a->flags & HEC_ACTIVITY_PEER) != 0;
        return FIXED + 2u * (HEC_MEMORY_KIND_COUNT * (uint64_t)memory(a->from) + memory(a->to)) + peer;
    }
    case HEC_ACTIVITY_SYNC:
        return FIXED_END - HEC_SYNC_TYPE_COUNT + (a->detail < HEC_SYNC_TYPE_COUNT ? a->detail : 0u);
    case HEC_ACTIVITY_STACK:
        return a->name && a->name < tables->timeline.frame_count ? FIXED_END + 2 * names + a->name : 1u + a->kind;
    case HEC_ACTIVITY_MEMSET:
    case HEC_ACTIVITY_STEP:
    case HEC_ACTIVITY_WINDOW:
    case HEC_ACTIVITY_BURST:
        return 1u + a->kind;
    default:
        return has_name(tables, name) ? FIXED_END + (uint64_t)name : 1u + a->kind;
    }
}

static const char *side(uint8_t kind) {
    static const char *const names[HEC_MEMORY_KIND_COUNT] = {
        [HEC_MEMORY_UNKNOWN] = "unknown", [HEC_MEMORY_PAGEABLE] = "host", [HEC_MEMORY_PINNED] = "host",
        [HEC_MEMORY_DEVICE] = "device",   [HEC_MEMORY_ARRAY] = "device",  [HEC_MEMORY_MANAGED] = "managed memory",
        [HEC_MEMORY_HOST] = "host",
    };
    return names[memory(kind)];
}

static void name_copy(const struct hec_activity *a, char *out, size_t size) {
    uint8_t from = memory(a->from), to = memory(a->to);
    const char *host = from == HEC_MEMORY_PINNED || to == HEC_MEMORY_PINNED       ? " (pinned)"
                       : from == HEC_MEMORY_PAGEABLE || to == HEC_MEMORY_PAGEABLE ? " (pageable)"
                                                                                  : "";
    if (a->flags & HEC_ACTIVITY_PEER)
        snprintf(out, size, "copy to another device");
    else
        snprintf(out, size, "copy %s to %s%s", side(from), side(to), host);
}

static void name_frame(const struct hec_export_tables *tables, uint32_t id, char *out, size_t size) {
    const struct hec_frame *frame = &tables->timeline.frames[id];
    const char *file = hec_timeline_name(&tables->timeline, frame->file), *last = strrchr(file, '/');
    snprintf(out, size, "%s (%s:%d)", hec_timeline_name(&tables->timeline, frame->function), last ? last + 1 : file,
             (int)frame->line);
}

/* Reading a mangled name takes microseconds: once a name. */
static const char *kernel_name(struct hec_export_tables *tables, uint32_t name) {
    char readable[2048];
    if (!tables->readable[name]) {
        hec_kernel_readable(hec_timeline_name(&tables->timeline, name), readable, sizeof readable);
        tables->readable[name] = strdup(readable);
    }
    return tables->readable[name] ? tables->readable[name] : "";
}

const char *hec_export_name(struct hec_export_tables *tables, const struct hec_activity *a, char *out, size_t size) {
    char built[2048];
    uint32_t kernel = hec_timeline_kernel_name(&tables->timeline, a->name);
    const char *text = hec_timeline_name(&tables->timeline, a->name), *from = built;
    snprintf(built, sizeof built, "%s", hec_activity_kind_name((enum hec_activity_kind)a->kind));
    switch (a->kind) {
    case HEC_ACTIVITY_KERNEL:
        from = has_name(tables, kernel) ? kernel_name(tables, kernel) : built;
        break;
    case HEC_ACTIVITY_COPY:
        name_copy(a, built, sizeof built);
        break;
    case HEC_ACTIVITY_SYNC:
        snprintf(built, sizeof built, "wait (%s)", hec_sync_type_name((enum hec_sync_type)a->detail));
        break;
    case HEC_ACTIVITY_STACK:
        if (a->name && a->name < tables->timeline.frame_count)
            name_frame(tables, a->name, built, sizeof built);
        break;
    case HEC_ACTIVITY_WINDOW:
        from = "traced";
        break;
    case HEC_ACTIVITY_BURST:
        from = "launches";
        break;
    case HEC_ACTIVITY_MEMSET:
    case HEC_ACTIVITY_STEP:
        break;
    default:
        from = text[0] ? text : built;
    }
    return hec_text_clean(out, size, from, strlen(from), true);
}
