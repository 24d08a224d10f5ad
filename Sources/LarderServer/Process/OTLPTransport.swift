import CCurl
import CacheCore
import CacheTracing
import Dispatch
import Synchronization

/// Posts spans with libcurl, one request at a time, on a serial queue outside the cooperative thread pool, because
/// libcurl blocks. It keeps its connection between requests.
///
/// No configuration comes from the environment of libcurl: no proxy, no netrc. Redirects are not followed, so that
/// credentials stay with the receiver.
// Unchecked because of the pointers: the handles are used on the queue only, and curl_multi_wakeup is thread-safe.
final class OTLPTransport: @unchecked Sendable {
    /// Whether the request in progress was cancelled.
    private final class Cancellation: Sendable {
        let isRaised = Atomic(false)
    }

    /// The response, filled by libcurl's callbacks on the queue.
    private final class Collector {
        /// The kept size of a body; it has a short JSON text.
        static let bodyLimit = 64 << 10

        var headers = HeaderList()
        var body: [UInt8] = []
    }

    /// The longest wait of libcurl's loop, which a cancellation interrupts.
    private static let waitMilliseconds: Int32 = 1000
    private static let isReady: Bool = larder_global_init() == CURLE_OK

    private let multi: UnsafeMutableRawPointer
    private let easy: UnsafeMutableRawPointer
    private let queue = DispatchQueue(label: "larder.otlp")

    /// Nil if libcurl cannot be used.
    init?() {
        guard Self.isReady, let multi = curl_multi_init() else { return nil }
        guard let easy = curl_easy_init() else {
            curl_multi_cleanup(multi)
            return nil
        }
        (self.multi, self.easy) = (multi, easy)
    }

    deinit {
        curl_easy_cleanup(easy)
        curl_multi_cleanup(multi)
    }

    /// Sends one request. Returns within its time limit, and soon after a cancellation.
    @Sendable func send(_ request: OTLPRequest) async -> OTLPResponse {
        let cancellation = Cancellation()
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                queue.async { continuation.resume(returning: self.perform(request, cancellation)) }
            }
        } onCancel: {
            cancellation.isRaised.store(true, ordering: .relaxed)
            curl_multi_wakeup(self.multi)
        }
    }

    /// Sends the request and blocks until its end.
    private func perform(_ request: OTLPRequest, _ cancellation: Cancellation) -> OTLPResponse {
        let collector = Collector()
        var headers: UnsafeMutablePointer<curl_slist>?
        // The first line disables `Expect: 100-continue`, which would delay large requests.
        for line in ["Expect:"] + request.headers.exposed.fields.map({ "\($0.name): \($0.value)" }) {
            headers = curl_slist_append(headers, line) ?? headers
        }
        defer { curl_slist_free_all(headers) }
        return request.body.withUnsafeBytes { body in
            withExtendedLifetime(collector) {
                curl_easy_reset(easy)
                setOptions(request, headers, body, Unmanaged.passUnretained(collector).toOpaque())
                guard curl_multi_add_handle(multi, easy) == CURLM_OK else { return .failure("libcurl cannot be used.") }
                defer { curl_multi_remove_handle(multi, easy) }
                guard let code = completion(cancellation) else { return .failure("The request was cancelled.") }
                var status = 0
                larder_easy_get_long(easy, CURLINFO_RESPONSE_CODE, &status)
                guard code == CURLE_OK, status > 0 else {
                    return .failure("The request failed: \(String(cString: curl_easy_strerror(code))).")
                }
                return .response(status: status, headers: collector.headers, body: collector.body)
            }
        }
    }

    /// Drives libcurl until the request has ended; returns libcurl's code, or nil after a cancellation.
    private func completion(_ cancellation: Cancellation) -> CURLcode? {
        while !cancellation.isRaised.load(ordering: .relaxed) {
            var (running, left): (Int32, Int32) = (0, 0)
            curl_multi_perform(multi, &running)
            if let message = curl_multi_info_read(multi, &left)?.pointee, message.msg == CURLMSG_DONE {
                return message.data.result
            }
            curl_multi_poll(multi, nil, 0, Self.waitMilliseconds, nil)
        }
        return nil
    }

    /// `body` and `headers` are not copied; `context` is the collector. All exist until the request has ended.
    private func setOptions(
        _ request: OTLPRequest, _ headers: UnsafeMutablePointer<curl_slist>?, _ body: UnsafeRawBufferPointer,
        _ context: UnsafeMutableRawPointer
    ) {
        let options: [(CURLoption, Int)] = [
            (CURLOPT_NOSIGNAL, 1), (CURLOPT_QUICK_EXIT, 1), (CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1),
            (CURLOPT_HTTP09_ALLOWED, 0), (CURLOPT_FOLLOWLOCATION, 0), (CURLOPT_NETRC, 0), (CURLOPT_TCP_NODELAY, 1),
            (CURLOPT_POST, 1),
            (CURLOPT_SSL_VERIFYPEER, 1), (CURLOPT_SSL_VERIFYHOST, 2), (CURLOPT_POSTFIELDSIZE, body.count),
            (CURLOPT_TIMEOUT_MS, Int(clamping: max(1, request.timeout.wholeMilliseconds))),
        ]
        let texts: [(CURLoption, String)] = [
            (CURLOPT_URL, request.endpoint.url), (CURLOPT_PROTOCOLS_STR, "http,https"), (CURLOPT_PROXY, ""),
            (CURLOPT_NOPROXY, "*"),
        ]
        for (option, value) in options { larder_easy_set_long(easy, option, value) }
        for (option, value) in texts { larder_easy_set_text(easy, option, value) }
        larder_easy_set_pointer(easy, CURLOPT_POSTFIELDS, UnsafeMutableRawPointer(mutating: body.baseAddress))
        larder_easy_set_headers(easy, headers)
        larder_easy_set_on_header(easy, Self.onHeader, context)
        larder_easy_set_on_body(easy, Self.onBody, context)
    }

    private static let onHeader: curl_write_callback = { bytes, size, count, context in
        let line = String(decoding: UnsafeRawBufferPointer(start: bytes, count: size * count), as: UTF8.self)
        let collector = context.map { Unmanaged<Collector>.fromOpaque($0).takeUnretainedValue() }
        // An interim response precedes the final one, whose fields count.
        if line.hasPrefix("HTTP/") { collector?.headers = HeaderList() }
        if let colon = line.firstIndex(of: ":") {
            let value = line[line.index(after: colon)...].prefix { $0 != "\r\n" && $0 != "\n" }
            collector?.headers.append(String(line[..<colon]), String(FieldText.trimmed(value)))
        }
        return size * count
    }

    private static let onBody: curl_write_callback = { bytes, size, count, context in
        let piece = UnsafeRawBufferPointer(start: bytes, count: size * count)
        let collector = context.map { Unmanaged<Collector>.fromOpaque($0).takeUnretainedValue() }
        if let collector { collector.body += piece.prefix(Collector.bodyLimit - collector.body.count) }
        return piece.count
    }
}
