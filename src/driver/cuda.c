#include "driver/cuda.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define SYSTEM_LIBRARY "libcuda.so.1"

static const struct {
    size_t offset; /* of the pointer in struct hec_cuda */
    const char *names[2];
} symbols[] = {
#define HEC_CUDA_SYMBOL(member, arguments, newest, older) {offsetof(struct hec_cuda, member), {newest, older}},
#include "driver/cuda_symbols.def"
#undef HEC_CUDA_SYMBOL
};

int hec_cuda_load(const char *path, struct hec_cuda *cuda, struct hec_why *why) {
    memset(cuda, 0, sizeof *cuda);
    cuda->library = dlopen(path ? path : SYSTEM_LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!cuda->library) {
        if (!path)
            return hec_fail(why, HEC_ERR_NOTFOUND, "no CUDA driver here: " SYSTEM_LIBRARY " not found");
        const char *reason = dlerror();
        return hec_fail(why, HEC_ERR_NOTFOUND, "cannot load %s: %s", path, reason ? reason : "unknown reason");
    }
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        void *address = dlsym(cuda->library, symbols[i].names[0]);
        if (!address && symbols[i].names[1])
            address = dlsym(cuda->library, symbols[i].names[1]);
        if (!address) {
            hec_cuda_unload(cuda);
            return hec_fail(why, HEC_ERR_UNSUPPORTED, "%s is no usable CUDA driver: it lacks %s",
                            path ? path : SYSTEM_LIBRARY, symbols[i].names[0]);
        }
        /* POSIX makes an object pointer from dlsym usable as a function pointer; copying its bytes says so in C */
        memcpy((char *)cuda + symbols[i].offset, &address, sizeof address);
    }
    return HEC_OK;
}

void hec_cuda_unload(struct hec_cuda *cuda) {
    if (cuda->library)
        dlclose(cuda->library);
    memset(cuda, 0, sizeof *cuda);
}

static const char *text_of(const struct hec_cuda *cuda, int code) {
    const char *text = NULL;
    return cuda->error_string(code, &text) == HEC_CUDA_SUCCESS && text ? text : "unknown CUDA error";
}

static int error_of(int code) {
    switch (code) {
    case HEC_CUDA_SUCCESS:
        return HEC_OK;
    case HEC_CUDA_OUT_OF_MEMORY:
        return HEC_ERR_NOMEM;
    case HEC_CUDA_NO_DEVICE:
        return HEC_ERR_NOTFOUND;
    case HEC_CUDA_INVALID_PTX:
    case HEC_CUDA_UNSUPPORTED_PTX_VERSION:
    case HEC_CUDA_NO_BINARY_FOR_GPU:
        return HEC_ERR_UNSUPPORTED;
    default:
        return HEC_ERR_FAILED;
    }
}

int hec_cuda_fail(const struct hec_cuda *cuda, int code, const char *what, struct hec_why *why) {
    return hec_fail(why, error_of(code), "%s: %s (CUDA error %d)", what, text_of(cuda, code), code);
}

void hec_cuda_uuid_text(const unsigned char uuid[16], char text[48]) {
    int at = snprintf(text, 48, "GPU-");
    for (int i = 0; i < 16; i++)
        at += snprintf(text + at, 48 - (size_t)at, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", uuid[i]);
}
