#include "model/trace.h"

#include "base/trace.h"

#include <string.h>

#define NAMES(function, type, count, ...)                                                                              \
    const char *function(type value) {                                                                                 \
        static const char *const names[] = {__VA_ARGS__};                                                              \
        _Static_assert(sizeof names / sizeof names[0] == (count), #function);                                          \
        return (unsigned)value < (count) ? names[value] : "unknown";                                                   \
    }

NAMES(hec_activity_kind_name, enum hec_activity_kind, HEC_ACTIVITY_KIND_COUNT, "kernel", "copy", "memset", "graph",
      "sync", "api", "range", "phase", "step", "value", "stack", "window", "operator", "burst")
NAMES(hec_memory_kind_name, enum hec_memory_kind, HEC_MEMORY_KIND_COUNT, "unknown", "pageable", "pinned", "device",
      "array", "managed", "host")
NAMES(hec_sync_type_name, enum hec_sync_type, HEC_SYNC_TYPE_COUNT, "unknown", "event", "stream_wait", "stream",
      "context")
NAMES(hec_api_class_name, enum hec_api_class, HEC_API_CLASS_COUNT, "other", "launch", "graph", "copy", "memset", "sync",
      "alloc", "free", "module")
NAMES(hec_step_source_name, enum hec_step_source, HEC_STEP_SOURCE_COUNT, "none", "marked", "optimizer", "module",
      "annotated", "range", "periodic")

static const char *const modes[HEC_TRACE_MODE_COUNT] = {"off", "auto", "full", "graph"};

const char *hec_trace_mode_name(int mode) {
    return modes[mode >= 0 && mode < HEC_TRACE_MODE_COUNT ? mode : HEC_TRACE_OFF];
}

int hec_trace_mode_find(const char *name) {
    for (int mode = 0; mode < HEC_TRACE_MODE_COUNT; mode++)
        if (strcmp(name, modes[mode]) == 0)
            return mode;
    return -1;
}
