#include "tracer/tracer.h"

#include <dlfcn.h>
#include <stdio.h>

static const struct call {
    const char *name;
    bool needed;
    size_t offset;
} calls[] = {
#define CALL(name, needed, parameters) {"cupti" #name, needed, offsetof(struct hec_cupti, name)},
#include "tracer/cupti.def"
#undef CALL
};

int hec_bind(void *handle, struct hec_library *library, char *why, size_t why_bytes) {
    memset(&library->calls, 0, sizeof library->calls);
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        void *address = dlsym(handle, calls[i].name);
        if (!address && calls[i].needed) {
            snprintf(why, why_bytes, "%.200s is no CUPTI that can be used: it lacks %s", library->path, calls[i].name);
            return -1;
        }
        memcpy((char *)&library->calls + calls[i].offset, &address, sizeof address);
    }
    library->version = 0;
    library->calls.GetVersion(&library->version);
    if (library->version < HEC_CUPTI_VERSION_MIN || library->version >= HEC_CUPTI_VERSION_LIMIT) {
        snprintf(why, why_bytes, "%.200s has version %u of CUPTI; known are 11.8 (%u) to 13 (below %u)", library->path,
                 library->version, HEC_CUPTI_VERSION_MIN, HEC_CUPTI_VERSION_LIMIT);
        return -1;
    }
    library->handle = handle;
    return 0;
}

void hec_bind_result(const struct hec_cupti *cupti, uint32_t result, char *text, size_t bytes) {
    const char *name = NULL;
    if (!cupti->GetResultString || cupti->GetResultString(result, &name) != HEC_CUPTI_SUCCESS || !name)
        name = "";
    snprintf(text, bytes, "%u %.60s", result, name);
}
