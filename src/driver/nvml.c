#include "driver/nvml.h"

#include "model/throttle.h"

#include <dlfcn.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#define SYSTEM_LIBRARY "libnvidia-ml.so.1"
#define NAMES_MAX 3

static const struct {
    int code;
    const char *text;
} codes[] = {
#define HEC_NVML_CODE(code, name, text) {code, text},
#include "driver/nvml_errors.def"
#undef HEC_NVML_CODE
};

enum need { MANDATORY, OPTIONAL };

static const struct {
    enum need need;
    size_t offset; /* of the pointer in struct hec_nvml */
    const char *names[NAMES_MAX];
} symbols[] = {
#define HEC_NVML_SYMBOL(member, need, arguments, newest, older, oldest)                                                \
    {need, offsetof(struct hec_nvml, member), {newest, older, oldest}},
#include "driver/nvml_symbols.def"
#undef HEC_NVML_SYMBOL
};

const char *hec_nvml_code_text(int code) {
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (codes[i].code == code)
            return codes[i].text;
    return "unknown NVML error";
}

int hec_nvml_error(int code) {
    switch (code) {
    case HEC_NVML_SUCCESS:
        return HEC_OK;
    case HEC_NVML_GPU_IS_LOST:
        return HEC_ERR_LOST;
    case HEC_NVML_NOT_SUPPORTED:
    case HEC_NVML_FUNCTION_NOT_FOUND:
    case HEC_NVML_ARGUMENT_VERSION_MISMATCH:
    case HEC_NVML_DEPRECATED:
    case HEC_NVML_DRIVER_NOT_LOADED:
    case HEC_NVML_LIB_RM_VERSION_MISMATCH:
        return HEC_ERR_UNSUPPORTED;
    case HEC_NVML_NO_PERMISSION:
    case HEC_NVML_OPERATING_SYSTEM:
        return HEC_ERR_PERMISSION;
    case HEC_NVML_NOT_FOUND:
    case HEC_NVML_GPU_NOT_FOUND:
    case HEC_NVML_LIBRARY_NOT_FOUND:
        return HEC_ERR_NOTFOUND;
    case HEC_NVML_IN_USE:
    case HEC_NVML_NOT_READY:
    case HEC_NVML_TIMEOUT:
        return HEC_ERR_BUSY;
    case HEC_NVML_MEMORY:
        return HEC_ERR_NOMEM;
    default:
        return HEC_ERR_FAILED;
    }
}

int64_t hec_nvml_throttle(unsigned long long reasons) {
    static const struct {
        unsigned long long bit; /* nvmlClocksEventReason... of nvml.h */
        enum hec_throttle_reason reason;
    } known[] = {
        {0x001, HEC_THROTTLED_IDLE},
        {0x002, HEC_THROTTLED_SETTING}, /* application clocks, or a lock */
        {0x004, HEC_THROTTLED_POWER_CAP},
        {0x008, HEC_THROTTLED_HARDWARE_SLOWDOWN},
        {0x010, HEC_THROTTLED_SYNC_BOOST},
        {0x020, HEC_THROTTLED_SOFTWARE_THERMAL},
        {0x040, HEC_THROTTLED_HARDWARE_THERMAL},
        {0x080, HEC_THROTTLED_POWER_BRAKE},
        {0x100, HEC_THROTTLED_DISPLAY},
    };
    int64_t said = 0;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        said |= reasons & known[i].bit ? known[i].reason : 0;
    return said;
}

/* Newest name first. Returns the generation that was bound, 0 for none. */
static unsigned char bind_symbol(struct hec_nvml *nvml, int i) {
    int known = 0;
    while (known < NAMES_MAX && symbols[i].names[known])
        known++;
    for (int n = 0; n < known; n++) {
        void *address = dlsym(nvml->library, symbols[i].names[n]);
        if (address) {
            /* POSIX makes an object pointer from dlsym usable as a function pointer; copying its bytes says so in C */
            memcpy((char *)nvml + symbols[i].offset, &address, sizeof address);
            return (unsigned char)(known - n);
        }
    }
    return 0;
}

int hec_nvml_load(const char *path, struct hec_nvml *nvml, struct hec_why *why) {
    memset(nvml, 0, sizeof *nvml);
    nvml->library = dlopen(path ? path : SYSTEM_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!nvml->library) {
        if (!path)
            return hec_fail(why, HEC_ERR_NOTFOUND, "no NVIDIA driver here: " SYSTEM_LIBRARY " not found");
        const char *reason = dlerror();
        return hec_fail(why, HEC_ERR_NOTFOUND, "cannot load %s: %s", path, reason ? reason : "unknown reason");
    }
    for (int i = 0; i < HEC_NVML_SYMBOL_COUNT; i++) {
        nvml->version[i] = bind_symbol(nvml, i);
        if (nvml->version[i] == 0 && symbols[i].need == MANDATORY) {
            hec_nvml_unload(nvml);
            return hec_fail(why, HEC_ERR_UNSUPPORTED, "%s is no usable NVML: it lacks %s", path ? path : SYSTEM_LIBRARY,
                            symbols[i].names[0]);
        }
    }
    return HEC_OK;
}

void hec_nvml_unload(struct hec_nvml *nvml) {
    if (nvml->library)
        dlclose(nvml->library);
    memset(nvml, 0, sizeof *nvml);
}

long long hec_nvml_value_integer(const union hec_nvml_value *value, int type) {
    switch (type) {
    case HEC_NVML_DOUBLE:
        return isfinite(value->as_double) && fabs(value->as_double) < 9e18 ? llround(value->as_double) : -1;
    case HEC_NVML_UNSIGNED:
        return value->as_unsigned;
    case HEC_NVML_ULONG:
        return value->as_ulong > LLONG_MAX ? -1 : (long long)value->as_ulong;
    case HEC_NVML_ULONGLONG:
        return value->as_ulonglong > LLONG_MAX ? -1 : (long long)value->as_ulonglong;
    case HEC_NVML_LONGLONG:
        return value->as_longlong;
    case HEC_NVML_INT:
        return value->as_int;
    case HEC_NVML_USHORT:
        return value->as_ushort;
    default:
        return -1;
    }
}
