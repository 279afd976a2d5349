#include "diagnose/result.h"

#include <string.h>

static const struct {
    const char *called, *package;
} frameworks[HEC_FRAMEWORK_COUNT] = {
    [HEC_FRAMEWORK_UNTOLD] = {"", ""},
#define HEC_FRAMEWORK(id, called, package) [HEC_FRAMEWORK_##id] = {called, package},
#include "diagnose/framework.def"
};

const char *hec_framework_name(enum hec_framework framework) {
    return (unsigned)framework < HEC_FRAMEWORK_COUNT ? frameworks[framework].called : "";
}

static bool has_kernel(const struct hec_summary *s, const char *part) {
    for (int i = 0; i < s->kernel_count; i++)
        if (strstr(s->kernels[i].name, part))
            return true;
    return false;
}

/* Simulated loads play PyTorch programs, and Kineto is PyTorch's profiler. */
static bool is_pytorch(const struct hec_summary *s) {
    return s->pytorch[0] || s->simulated[0] || strcmp(s->imported, "kineto") == 0 || strstr(s->command, "torchrun") ||
           has_kernel(s, "at::native") || has_kernel(s, "2at6native");
}

/* The package that came first. Where PyTorch came too, what has no training of its own serves it. */
enum hec_framework hec_framework_of(const struct hec_summary *s) {
    enum hec_framework first = s->framework[0] ? HEC_FRAMEWORK_OTHER : HEC_FRAMEWORK_UNTOLD;
    for (int i = 0; i < HEC_FRAMEWORK_COUNT; i++)
        if (s->framework[0] && strcmp(s->framework, frameworks[i].package) == 0)
            first = (enum hec_framework)i;
    if (first == HEC_FRAMEWORK_JAX || first == HEC_FRAMEWORK_TENSORFLOW)
        return first;
    if (is_pytorch(s))
        return HEC_FRAMEWORK_PYTORCH;
    bool python = s->python[0] || s->imported[0] || strstr(s->command, "python") || strstr(s->command, ".py");
    return first != HEC_FRAMEWORK_UNTOLD ? first : python ? HEC_FRAMEWORK_UNTOLD : HEC_FRAMEWORK_CUDA;
}
