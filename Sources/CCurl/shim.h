#pragma once
#include <curl/curl.h>

// Non-variadic wrappers of libcurl's variadic functions, one per argument type, because Swift cannot call variadic C
// functions. The parentheses around a function's name disable libcurl's type-checking macro of the same name.
// Each wrapper returns libcurl's code.

static inline CURLcode larder_easy_set_long(CURL *easy, CURLoption option, long value) {
    return (curl_easy_setopt)(easy, option, value);
}

static inline CURLcode larder_easy_set_offset(CURL *easy, CURLoption option, curl_off_t value) {
    return (curl_easy_setopt)(easy, option, value);
}

// libcurl copies the text, except for CURLOPT_POSTFIELDS.
static inline CURLcode larder_easy_set_text(CURL *easy, CURLoption option, const char *value) {
    return (curl_easy_setopt)(easy, option, value);
}

static inline CURLcode larder_easy_set_pointer(CURL *easy, CURLoption option, void *value) {
    return (curl_easy_setopt)(easy, option, value);
}

// libcurl does not copy the list: it must exist as long as the handle uses it.
static inline CURLcode larder_easy_set_headers(CURL *easy, struct curl_slist *headers) {
    return (curl_easy_setopt)(easy, CURLOPT_HTTPHEADER, headers);
}

// A callback and its context are set together; the context is set only if the callback was accepted.
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

// For the times of CURLINFO_…_TIME_T: microseconds.
static inline CURLcode larder_easy_get_offset(CURL *easy, CURLINFO info, curl_off_t *value) {
    return (curl_easy_getinfo)(easy, info, value);
}

static inline CURLMcode larder_multi_set_long(CURLM *multi, CURLMoption option, long value) {
    return (curl_multi_setopt)(multi, option, value);
}

// Not thread-safe in libcurl before 7.84; called once per process.
static inline CURLcode larder_global_init(void) { return curl_global_init(CURL_GLOBAL_DEFAULT); }
