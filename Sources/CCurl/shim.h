#pragma once
#include <curl/curl.h>

// Swift cannot call variadic functions: these are libcurl's, one for each type of argument.

static inline CURLcode larder_easy_set_long(CURL *easy, CURLoption option, long value) {
    return (curl_easy_setopt)(easy, option, value);
}

static inline CURLcode larder_easy_set_offset(CURL *easy, CURLoption option, curl_off_t value) {
    return (curl_easy_setopt)(easy, option, value);
}

static inline CURLcode larder_easy_set_text(CURL *easy, CURLoption option, const char *value) {
    return (curl_easy_setopt)(easy, option, value);
}

static inline CURLcode larder_easy_set_pointer(CURL *easy, CURLoption option, void *value) {
    return (curl_easy_setopt)(easy, option, value);
}

static inline CURLcode larder_easy_set_headers(CURL *easy, struct curl_slist *headers) {
    return (curl_easy_setopt)(easy, CURLOPT_HTTPHEADER, headers);
}

static inline CURLcode larder_easy_set_on_header(CURL *easy, curl_write_callback callback, void *context) {
    CURLcode code = (curl_easy_setopt)(easy, CURLOPT_HEADERFUNCTION, callback);
    return code ? code : (curl_easy_setopt)(easy, CURLOPT_HEADERDATA, context);
}

static inline CURLcode larder_easy_set_on_body(CURL *easy, curl_write_callback callback, void *context) {
    CURLcode code = (curl_easy_setopt)(easy, CURLOPT_WRITEFUNCTION, callback);
    return code ? code : (curl_easy_setopt)(easy, CURLOPT_WRITEDATA, context);
}

static inline CURLcode larder_easy_set_on_socket(CURL *easy, curl_opensocket_callback callback, void *context) {
    CURLcode code = (curl_easy_setopt)(easy, CURLOPT_OPENSOCKETFUNCTION, callback);
    return code ? code : (curl_easy_setopt)(easy, CURLOPT_OPENSOCKETDATA, context);
}

static inline CURLcode larder_easy_set_on_request(CURL *easy, curl_prereq_callback callback, void *context) {
    CURLcode code = (curl_easy_setopt)(easy, CURLOPT_PREREQFUNCTION, callback);
    return code ? code : (curl_easy_setopt)(easy, CURLOPT_PREREQDATA, context);
}

static inline CURLcode larder_easy_get_long(CURL *easy, CURLINFO info, long *value) {
    return (curl_easy_getinfo)(easy, info, value);
}

static inline CURLcode larder_easy_get_offset(CURL *easy, CURLINFO info, curl_off_t *value) {
    return (curl_easy_getinfo)(easy, info, value);
}

static inline CURLMcode larder_multi_set_long(CURLM *multi, CURLMoption option, long value) {
    return (curl_multi_setopt)(multi, option, value);
}

static inline CURLcode larder_global_init(void) { return curl_global_init(CURL_GLOBAL_DEFAULT); }
