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

static struct {
    uint8_t api_class;
    const char *name; /* CUPTI's own string */
} known[2][HEC_CALLS_MAX];

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
