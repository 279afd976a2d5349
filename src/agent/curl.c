#include "agent/curl.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

int hec_curl_load(struct hec_curl *curl, const char *what, struct hec_why *why) {
    static const char *const libraries[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};
    void *library = NULL;
    for (size_t i = 0; i < sizeof libraries / sizeof libraries[0] && !library; i++)
        library = dlopen(libraries[i], RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return hec_fail(why, HEC_ERR_UNSUPPORTED, "%s needs libcurl (package libcurl4): %s", what, dlerror());
    const struct {
        void *to;
        const char *name;
    } symbols[] = {
        {&curl->init, "curl_easy_init"},       {&curl->set, "curl_easy_setopt"},
        {&curl->perform, "curl_easy_perform"}, {&curl->info, "curl_easy_getinfo"},
        {&curl->cleanup, "curl_easy_cleanup"}, {&curl->text, "curl_easy_strerror"},
        {&curl->append, "curl_slist_append"},  {&curl->free_list, "curl_slist_free_all"},
    };
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        void *symbol = dlsym(library, symbols[i].name);
        if (!symbol)
            return hec_fail(why, HEC_ERR_UNSUPPORTED, "this libcurl has no %s", symbols[i].name);
        memcpy(symbols[i].to, &symbol, sizeof symbol);
    }
    return HEC_OK;
}
