#include "tracer/tracer.h"

#include <strings.h>

static const struct {
    const char *prefix;
    enum hec_trace_api_class api_class;
} classes[] = {
#define API(prefix, name) {prefix, HEC_TRACE_API_##name},
#include "tracer/api.def"
#undef API
};

/* A call that came so often within a window costs more than it says. */
#define UNWANTED_OFTEN 64u

static struct {
    uint8_t api_class;
    uint8_t unwanted; /* how often seen, up to UNWANTED_OFTEN */
    const char *name; /* CUPTI's own string */
} known[2][HEC_CALLS_MAX];

static bool learnt; /* something has become unwanted since it was asked */
static const uint32_t domains[2] = {HEC_CUPTI_DOMAIN_RUNTIME, HEC_CUPTI_DOMAIN_DRIVER};

enum hec_trace_api_class hec_calls_classify(const char *name) {
    name += strspn(name, "_");
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++)
        if (strncasecmp(name, classes[i].prefix, strlen(classes[i].prefix)) == 0)
            return classes[i].api_class;
    return HEC_TRACE_API_OTHER;
}

void hec_calls_open(const struct hec_cupti *cupti) {
    for (uint32_t domain = 0; domain < 2; domain++) {
        for (uint32_t cbid = 1; cbid < HEC_CALLS_MAX; cbid++) {
            const char *name = NULL;
            if (cupti->GetCallbackName(domains[domain], cbid, &name) != HEC_CUPTI_SUCCESS || !name)
                name = NULL;
            known[domain][cbid].name = name;
            known[domain][cbid].unwanted = 0;
            known[domain][cbid].api_class = (uint8_t)(name ? hec_calls_classify(name) : HEC_TRACE_API_OTHER);
        }
    }
}

enum hec_trace_api_class hec_calls_class(uint32_t domain, uint32_t cbid) {
    return domain < 2 && cbid < HEC_CALLS_MAX ? known[domain][cbid].api_class : HEC_TRACE_API_OTHER;
}

const char *hec_calls_name(uint32_t domain, uint32_t cbid) {
    const char *name = domain < 2 && cbid < HEC_CALLS_MAX ? known[domain][cbid].name : NULL;
    return name ? name : "(unknown call)";
}

void hec_calls_unwanted(uint32_t domain, uint32_t cbid) {
    if (domain >= 2 || cbid >= HEC_CALLS_MAX)
        return;
    uint8_t seen = __atomic_load_n(&known[domain][cbid].unwanted, __ATOMIC_RELAXED);
    if (seen >= UNWANTED_OFTEN)
        return;
    __atomic_store_n(&known[domain][cbid].unwanted, seen + 1, __ATOMIC_RELAXED);
    if (seen + 1 == UNWANTED_OFTEN)
        __atomic_store_n(&learnt, true, __ATOMIC_RELEASE);
}

bool hec_calls_learnt(void) {
    return __atomic_exchange_n(&learnt, false, __ATOMIC_ACQ_REL);
}

void hec_calls_leave_out(const struct hec_cupti *cupti) {
    for (uint32_t cbid = 1; cbid < HEC_CALLS_MAX; cbid++) {
        if (cupti->ActivityEnableRuntimeApi &&
            __atomic_load_n(&known[0][cbid].unwanted, __ATOMIC_RELAXED) >= UNWANTED_OFTEN)
            cupti->ActivityEnableRuntimeApi(cbid, 0);
        if (cupti->ActivityEnableDriverApi &&
            __atomic_load_n(&known[1][cbid].unwanted, __ATOMIC_RELAXED) >= UNWANTED_OFTEN)
            cupti->ActivityEnableDriverApi(cbid, 0);
    }
}

void hec_calls_forget(void) {
    for (uint32_t domain = 0; domain < 2; domain++)
        for (uint32_t cbid = 1; cbid < HEC_CALLS_MAX; cbid++)
            __atomic_store_n(&known[domain][cbid].unwanted, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&learnt, false, __ATOMIC_RELEASE);
}
