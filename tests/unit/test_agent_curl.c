/* How libcurl is loaded, which is only where it is asked for, by a loader that is made up. */
#include "agent/curl.h"
#include "unit.h"

#include <dlfcn.h>

static const char *const names[] = {"curl_easy_init",    "curl_easy_setopt",   "curl_easy_perform",
                                    "curl_easy_getinfo", "curl_easy_cleanup",  "curl_easy_strerror",
                                    "curl_slist_append", "curl_slist_free_all"};
#define NAMES (sizeof names / sizeof names[0])

static char one_library, functions[NAMES];
static const char *has, *lacks; /* a library, a function */
static char opened[256];
static bool loads; /* it is what is tested that asks; else sanitizers may, before they can watch anybody */

#define BEFORE_ALL __attribute__((no_sanitize_address))
void *__real_dlopen(const char *name, int how);
char *__real_dlerror(void);
void *__real_dlsym(void *restrict library, const char *restrict name);

void *__wrap_dlopen(const char *name, int how);
char *__wrap_dlerror(void);
void *__wrap_dlsym(void *restrict library, const char *restrict name);
BEFORE_ALL void *__wrap_dlopen(const char *name, int how) {
    if (!loads)
        return __real_dlopen(name, how);
    assert_int_equal(how, RTLD_NOW | RTLD_LOCAL);
    snprintf(opened + strlen(opened), sizeof opened - strlen(opened), "%s ", name);
    return has && strcmp(name, has) == 0 ? &one_library : NULL;
}
BEFORE_ALL char *__wrap_dlerror(void) {
    if (!loads)
        return __real_dlerror();
    static char said[] = "no such file";
    return said;
}
BEFORE_ALL void *__wrap_dlsym(void *restrict library, const char *restrict name) {
    if (!loads)
        return __real_dlsym(library, name);
    assert_ptr_equal(library, &one_library);
    for (size_t i = 0; i < NAMES; i++)
        if (strcmp(name, names[i]) == 0)
            return lacks && strcmp(name, lacks) == 0 ? NULL : &functions[i];
    fail_msg("%s is not libcurl's", name);
    return NULL;
}

static int load(struct hec_curl *curl, struct hec_why *why) {
    opened[0] = '\0';
    memset(curl, 0, sizeof *curl);
    loads = true;
    int err = hec_curl_load(curl, "--otlp", why);
    loads = false;
    return err;
}

TEST(each_function_is_found_by_its_name) {
    struct hec_curl curl;
    for (int second = 0; second < 2; second++) {
        has = second ? "libcurl-gnutls.so.4" : "libcurl.so.4";
        assert_int_equal(load(&curl, NULL), HEC_OK);
        assert_string_equal(opened, second ? "libcurl.so.4 libcurl-gnutls.so.4 " : "libcurl.so.4 ");
        const void *const found[NAMES] = {*(void **)&curl.init,   *(void **)&curl.set,      *(void **)&curl.perform,
                                          *(void **)&curl.info,   *(void **)&curl.cleanup,  *(void **)&curl.text,
                                          *(void **)&curl.append, *(void **)&curl.free_list};
        for (size_t i = 0; i < NAMES; i++)
            assert_ptr_equal(found[i], &functions[i]);
    }
}

TEST(where_there_is_none) {
    struct hec_curl curl;
    struct hec_why why = {""};
    has = NULL;
    assert_int_equal(load(&curl, &why), HEC_ERR_UNSUPPORTED);
    assert_string_equal(why.text, "--otlp needs libcurl (package libcurl4): no such file");
    assert_string_equal(opened, "libcurl.so.4 libcurl-gnutls.so.4 ");
}

TEST(where_it_lacks_a_function) {
    struct hec_curl curl;
    has = "libcurl.so.4";
    for (size_t i = 0; i < NAMES; i++) {
        char expected[64];
        struct hec_why why = {""};
        lacks = names[i];
        assert_int_equal(load(&curl, &why), HEC_ERR_UNSUPPORTED);
        snprintf(expected, sizeof expected, "this libcurl has no %s", names[i]);
        assert_string_equal(why.text, expected);
    }
    lacks = NULL;
}
