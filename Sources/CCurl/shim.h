#pragma once
#include <curl/curl.h>
#include <dlfcn.h>
#include <string.h>

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

// For the other lists: as above.
static inline CURLcode larder_easy_set_list(CURL *easy, CURLoption option, struct curl_slist *list) {
    return (curl_easy_setopt)(easy, option, list);
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

static inline CURLcode larder_easy_set_on_lookup(CURL *easy, curl_resolver_start_callback callback, void *context) {
    CURLcode code = (curl_easy_setopt)(easy, CURLOPT_RESOLVER_START_FUNCTION, callback);
    return code ? code : (curl_easy_setopt)(easy, CURLOPT_RESOLVER_START_DATA, context);
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

// TLS closure alerts. libcurl reports the end of a connection without the alert like one with it, in some combinations
// with OpenSSL. Therefore OpenSSL reports the alerts itself, over a function of the library that libcurl has loaded.

// Called with a TLS connection (SSL), the kind of an event and its value; see SSL_CTX_set_info_callback.
typedef void (*larder_tls_callback)(const void *connection, int kind, int value);

// Whether the TLS library in use reports alerts. libcurl names unused libraries in parentheses.
static inline int larder_tls_reports_alerts(void) {
    const char *name = curl_version_info(CURLVERSION_NOW)->ssl_version;
    return name && strncmp(name, "OpenSSL/", 8) == 0 && dlsym(NULL, "SSL_CTX_set_info_callback") != NULL;
}

// Sets the callback of all connections of a context (SSL_CTX).
static inline void larder_tls_set_on_event(void *context, larder_tls_callback callback) {
    void (*set)(void *, larder_tls_callback);
    *(void **)&set = dlsym(NULL, "SSL_CTX_set_info_callback");
    if (set) set(context, callback);
}

static inline CURLcode larder_easy_set_on_tls(CURL *easy, curl_ssl_ctx_callback callback) {
    return (curl_easy_setopt)(easy, CURLOPT_SSL_CTX_FUNCTION, callback);
}

// The TLS connection (SSL) of a running transfer; NULL: it has none.
static inline void *larder_easy_get_tls(CURL *easy) {
    struct curl_tlssessioninfo *session = NULL;
    if ((curl_easy_getinfo)(easy, CURLINFO_TLS_SSL_PTR, &session) || !session) return NULL;
    return session->internals;
}

// Whether the connection of a running transfer carries HTTP/2, as agreed over TLS (RFC 7301); 0: it does not, or the TLS
// library is not OpenSSL.
static inline int larder_easy_is_http2(CURL *easy) {
    void (*selected)(const void *, const unsigned char **, unsigned int *);
    const unsigned char *name = NULL;
    unsigned int length = 0;
    const void *connection = larder_tls_reports_alerts() ? larder_easy_get_tls(easy) : NULL;
    *(void **)&selected = connection ? dlsym(NULL, "SSL_get0_alpn_selected") : NULL;
    if (selected) selected(connection, &name, &length);
    return length == 2 && memcmp(name, "h2", 2) == 0;
}
