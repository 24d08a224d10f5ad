import CCurl
import CacheCore

/// Configures an easy handle for one hop of an exchange.
///
/// No configuration comes from the environment: no proxy, no netrc, no cookies, no HSTS or alt-svc store.
struct CurlOptions {
    private let easy: UnsafeMutableRawPointer
    /// The first error of libcurl; later ones are not recorded.
    private var failure: CURLcode = CURLE_OK

    /// Size of libcurl's receive buffer in bytes: about 1/16 s of the rate limit, so that a slow transfer receives
    /// small portions.
    private static func receiveBytes(rate: Int64?) -> Int { Int(min(max((rate ?? .max) / 16, 1024), 64 << 10)) }

    /// Applies every option. `headers` and `route` (CURLOPT_RESOLVE) must exist as long as the handle. Throws
    /// `.internal` if libcurl rejects an option.
    static func apply(
        to exchange: CurlExchange, headers: UnsafeMutablePointer<curl_slist>?,
        route: UnsafeMutablePointer<curl_slist>?, rate: Int64?
    ) throws(CacheError) {
        var options = CurlOptions(easy: exchange.easy)
        options.setTarget(
            exchange.sentURL, exchange.transfer.request, headers, exchange.settings, isHTTP1Only: exchange.isHTTP1Only)
        options.setSafety()
        options.setConnection(of: exchange, route)
        options.setTLS(exchange.transfer.request.tls)
        // Best effort: a handle that still has a buffer, which HTTP/2 can leave, rejects another size and works
        // nevertheless.
        larder_easy_set_long(exchange.easy, CURLOPT_BUFFERSIZE, receiveBytes(rate: rate))
        options.setCallbacks(Unmanaged.passUnretained(exchange).toOpaque())
        guard options.failure == CURLE_OK else {
            throw CacheError(
                .internal, "libcurl rejected an option of the transfer.",
                cause: CurlError(code: options.failure, systemError: 0))
        }
    }

    private init(easy: UnsafeMutableRawPointer) { self.easy = easy }

    /// Target, method, protocol version and connection sharing.
    private mutating func setTarget(
        _ url: String, _ request: UpstreamRequest, _ headers: UnsafeMutablePointer<curl_slist>?,
        _ settings: CurlPoolSettings, isHTTP1Only: Bool
    ) {
        set(CURLOPT_URL, url)
        set(CURLOPT_USERAGENT, settings.userAgent)
        keep(larder_easy_set_headers(easy, headers))
        setMethod(request)
        // Over TLS, a second transfer waits for the first connection's protocol, because HTTP/2 can carry both. Without
        // TLS it would wait for the first response.
        let isSecure = url.hasPrefix("https:")
        let mayShare = isSecure && !isHTTP1Only
        set(CURLOPT_HTTP_VERSION, mayShare ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1)
        set(CURLOPT_PIPEWAIT, mayShare ? 1 : 0)
        // Once a host turned out not to speak HTTP/2, libcurl stops sharing connections to it. A separate address scope
        // separates the transfers over HTTP/1.1. The scope has no other effect: only link-local addresses use it, and those
        // are never allowed.
        if isSecure, isHTTP1Only { set(CURLOPT_ADDRESS_SCOPE, 1) }
        set(CURLOPT_TCP_NODELAY, 1)
        set(CURLOPT_TCP_KEEPALIVE, 1)
        set(CURLOPT_HTTP_CONTENT_DECODING, 0)
        set(CURLOPT_HTTP_TRANSFER_DECODING, 1)
        set(CURLOPT_HTTP09_ALLOWED, 0)
        set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
    }

    private mutating func setMethod(_ request: UpstreamRequest) {
        switch request.method {
        case .head: return set(CURLOPT_NOBODY, 1)
        case .get: return set(CURLOPT_HTTPGET, 1)
        case .post: break
        case .put, .patch, .delete, .propfind: set(CURLOPT_CUSTOMREQUEST, request.method.rawValue)
        }
        guard request.method.hasBody else { return set(CURLOPT_HTTPGET, 1) }
        set(CURLOPT_POST, 1)
        set(CURLOPT_POSTFIELDSIZE, request.body.count)
        // libcurl copies the body. It takes a null pointer for a body that a callback provides.
        let code = (request.body + [0]).withUnsafeBytes { bytes in
            larder_easy_set_pointer(easy, CURLOPT_COPYPOSTFIELDS, UnsafeMutableRawPointer(mutating: bytes.baseAddress))
        }
        keep(code)
    }

    /// No redirects, protocols, proxies, signals or timeouts of libcurl's own: this module handles redirects and
    /// timeouts itself.
    private mutating func setSafety() {
        set(CURLOPT_NOSIGNAL, 1)
        set(CURLOPT_QUICK_EXIT, 1)
        set(CURLOPT_FOLLOWLOCATION, 0)
        set(CURLOPT_PROTOCOLS_STR, "http,https")
        set(CURLOPT_PROXY, "")
        set(CURLOPT_NOPROXY, "*")
        set(CURLOPT_NETRC, 0)
        set(CURLOPT_TIMEOUT_MS, 0)
    }

    /// The choice of the connection and its limits.
    private mutating func setConnection(of exchange: CurlExchange, _ route: UnsafeMutablePointer<curl_slist>?) {
        let isCollecting = exchange.isCollecting
        set(CURLOPT_FRESH_CONNECT, exchange.hop.needsFresh ? 1 : 0)
        set(CURLOPT_CONNECTTIMEOUT_MS, exchange.connectMilliseconds)
        // A pass that collects addresses refuses each at once; the other family need not wait.
        set(CURLOPT_HAPPY_EYEBALLS_TIMEOUT_MS, isCollecting ? 1 : Self.familyLead)
        // 0: the name is resolved again.
        set(CURLOPT_DNS_CACHE_TIMEOUT, isCollecting ? 0 : exchange.settings.nameSeconds)
        set(CURLOPT_MAXLIFETIME_CONN, exchange.settings.connectionSeconds)
        if let route { keep(larder_easy_set_list(easy, CURLOPT_RESOLVE, route)) }
    }

    /// The lead of the first address family in milliseconds (RFC 8305 §8).
    private static let familyLead = 200

    /// Configures the handle of a probe; `target` is its list of CURLOPT_CONNECT_TO. False: libcurl rejects an option.
    static func apply(
        probe: UpstreamAddresses.ProbeRequest, to easy: UnsafeMutableRawPointer,
        target: UnsafeMutablePointer<curl_slist>?, userAgent: String, context: UnsafeMutableRawPointer,
        onSocket: @escaping curl_opensocket_callback
    ) -> Bool {
        var options = CurlOptions(easy: easy)
        let connect = probe.timeouts.connect ?? .seconds(5)
        options.set(CURLOPT_URL, probe.url)
        options.set(CURLOPT_USERAGENT, userAgent)
        options.set(CURLOPT_NOBODY, 1)
        options.setSafety()
        options.setTLS(probe.tls)
        options.set(CURLOPT_CONNECTTIMEOUT_MS, Int(max(1, connect.wholeMilliseconds)))
        options.set(
            CURLOPT_TIMEOUT_MS, Int((connect + (probe.timeouts.firstByte ?? .seconds(15))).wholeMilliseconds) + 1)
        options.set(CURLOPT_FRESH_CONNECT, 1)
        options.set(CURLOPT_FORBID_REUSE, 1)
        options.keep(larder_easy_set_list(easy, CURLOPT_CONNECT_TO, target))
        options.keep(larder_easy_set_on_socket(easy, onSocket, context))
        return target != nil && options.failure == CURLE_OK
    }

    /// Certificate verification; a CA file replaces the system's authorities.
    private mutating func setTLS(_ tls: TLSSettings) {
        set(CURLOPT_SSL_VERIFYPEER, tls.verify ? 1 : 0)
        set(CURLOPT_SSL_VERIFYHOST, tls.verify ? 2 : 0)
        // Best effort: without it, bodies that the end of the connection delimits are not known to be complete.
        if TLSClosure.isReported { larder_easy_set_on_tls(easy, TLSClosure.observe) }
        if let certificate = tls.certificateFile { set(CURLOPT_SSLCERT, certificate) }
        if let key = tls.keyFile { set(CURLOPT_SSLKEY, key) }
        guard let file = tls.caFile else { return }
        set(CURLOPT_CAINFO, file)
        keep(larder_easy_set_pointer(easy, CURLOPT_CAPATH, nil))
    }

    /// `context` is the exchange, unretained: it exists as long as its handle is in the multi handle.
    private mutating func setCallbacks(_ context: UnsafeMutableRawPointer) {
        keep(larder_easy_set_on_header(easy, CurlCallbacks.header, context))
        keep(larder_easy_set_on_body(easy, CurlCallbacks.body, context))
        keep(larder_easy_set_on_lookup(easy, CurlCallbacks.lookup, context))
        keep(larder_easy_set_on_socket(easy, CurlCallbacks.openSocket, context))
        keep(larder_easy_set_on_request(easy, CurlCallbacks.beforeRequest, context))
    }

    private mutating func set(_ option: CURLoption, _ value: Int) {
        keep(larder_easy_set_long(easy, option, value))
    }

    private mutating func set(_ option: CURLoption, _ value: String) {
        keep(larder_easy_set_text(easy, option, value))
    }

    /// Records the first error.
    private mutating func keep(_ code: CURLcode) { if failure == CURLE_OK { failure = code } }
}
