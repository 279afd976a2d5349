/* libcurl, loaded when something needs it: it is no part of HEC, and a machine may not have it. */
#pragma once

#include "base/error.h"

#include <curl/curl.h>

struct hec_curl {
    __typeof__(curl_easy_init) *init;
    __typeof__(curl_easy_setopt) *set;
    __typeof__(curl_easy_perform) *perform;
    __typeof__(curl_easy_getinfo) *info;
    __typeof__(curl_easy_cleanup) *cleanup;
    __typeof__(curl_easy_strerror) *text;
    __typeof__(curl_slist_append) *append;
    __typeof__(curl_slist_free_all) *free_list;
};

/* what: who needs it, for the sentence of HEC_ERR_UNSUPPORTED. The library stays: TLS leaves handlers of its own behind. */
int hec_curl_load(struct hec_curl *curl, const char *what, struct hec_why *why);
