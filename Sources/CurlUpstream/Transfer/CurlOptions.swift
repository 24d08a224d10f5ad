import CCurl
import CacheCore

/// Sets an easy handle up for one hop of an exchange.
///
/// Nothing is taken from the environment: no proxy, no netrc, no cookies, no HSTS or alt-svc store.
struct CurlOptions {
    private let easy: UnsafeMutableRawPointer
    private var failure: CURLcode = CURLE_OK

    /// Receive buffer in bytes; small where the rate is, so that a slow transfer comes in small steps.
    private static func receiveBytes(rate: Int64?) -> Int { Int(min(max((rate ?? .max) / 16, 1024), 64 << 10)) }

    /// Applies every option; `headers` must live as long as the hop. Throws `.internal` where libcurl refuses one.
    static func apply(
        to exchange: CurlExchange, headers: UnsafeMutablePointer<curl_slist>?, rate: Int64?
    ) throws(CacheError) {
        var options = CurlOptions(easy: exchange.easy)
        options.setTarget(exchange.url.text, exchange.transfer.request, headers, exchange.settings)
        options.setSafety()
        options.set(CURLOPT_FRESH_CONNECT, exchange.needsFreshConnection ? 1 : 0)
        options.setTLS(exchange.transfer.request.tls)
        // A wish: a handle that still has a buffer, as HTTP/2 may leave it, refuses another size and works all the same.
        larder_easy_set_long(exchange.easy, CURLOPT_BUFFERSIZE, receiveBytes(rate: rate))
        options.setCallbacks(Unmanaged.passUnretained(exchange).toOpaque())
        guard options.failure == CURLE_OK else {
            throw CacheError(
                .internal, "The transfer could not be set up.", cause: CurlError(code: options.failure, systemError: 0))
        }
    }

    private init(easy: UnsafeMutableRawPointer) { self.easy = easy }

    private mutating func setTarget(
        _ url: String, _ request: UpstreamRequest, _ headers: UnsafeMutablePointer<curl_slist>?,
        _ settings: CurlPoolSettings
    ) {
        set(CURLOPT_URL, url)
        set(CURLOPT_USERAGENT, settings.userAgent)
        keep(larder_easy_set_headers(easy, headers))
        if request.method == .head { set(CURLOPT_NOBODY, 1) } else { set(CURLOPT_HTTPGET, 1) }
        // Over TLS a second transfer waits to see whether the first one's connection turns out to carry both; without
        // TLS that would hold it up until the first response.
        let isSecure = url.hasPrefix("https:")
        let mayShare = isSecure && !request.mayBePaused
        set(CURLOPT_HTTP_VERSION, mayShare ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1)
        set(CURLOPT_PIPEWAIT, mayShare ? 1 : 0)
        // libcurl shares no connection of a host whose last one turned out not to be HTTP/2; those of another scope are kept
        // apart. Only link-local addresses, which are never allowed, have one.
        if isSecure, request.mayBePaused { set(CURLOPT_ADDRESS_SCOPE, 1) }
        set(CURLOPT_TCP_NODELAY, 1)
        set(CURLOPT_TCP_KEEPALIVE, 1)
        set(CURLOPT_HTTP_CONTENT_DECODING, 0)
        set(CURLOPT_HTTP_TRANSFER_DECODING, 1)
        set(CURLOPT_HTTP09_ALLOWED, 0)
        set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
    }

    private mutating func setSafety() {
        set(CURLOPT_NOSIGNAL, 1)
        set(CURLOPT_QUICK_EXIT, 1)
        set(CURLOPT_FOLLOWLOCATION, 0)
        set(CURLOPT_PROTOCOLS_STR, "http,https")
        set(CURLOPT_PROXY, "")
        set(CURLOPT_NOPROXY, "*")
        set(CURLOPT_NETRC, 0)
        set(CURLOPT_CONNECTTIMEOUT_MS, 0)
        set(CURLOPT_TIMEOUT_MS, 0)
    }

    private mutating func setTLS(_ tls: TLSSettings) {
        set(CURLOPT_SSL_VERIFYPEER, tls.verify ? 1 : 0)
        set(CURLOPT_SSL_VERIFYHOST, tls.verify ? 2 : 0)
        guard let file = tls.caFile else { return }
        set(CURLOPT_CAINFO, file)
        keep(larder_easy_set_pointer(easy, CURLOPT_CAPATH, nil))
    }

    private mutating func setCallbacks(_ context: UnsafeMutableRawPointer) {
        keep(larder_easy_set_on_header(easy, CurlCallbacks.header, context))
        keep(larder_easy_set_on_body(easy, CurlCallbacks.body, context))
        keep(larder_easy_set_on_socket(easy, CurlCallbacks.openSocket, context))
        keep(larder_easy_set_on_request(easy, CurlCallbacks.beforeRequest, context))
    }

    private mutating func set(_ option: CURLoption, _ value: Int) {
        keep(larder_easy_set_long(easy, option, value))
    }

    private mutating func set(_ option: CURLoption, _ value: String) {
        keep(larder_easy_set_text(easy, option, value))
    }

    private mutating func keep(_ code: CURLcode) { if failure == CURLE_OK { failure = code } }
}
