import CCurl
import CacheCore
import Glibc

/// Blocking HTTP/1.1 client of one service over libcurl, for commands. It keeps its connection between requests.
///
/// Not thread-safe: used on the thread of a command, never on the shared executor. Requests inside the service use the
/// transfer workers of `CurlUpstream`. No configuration comes from the
/// environment of libcurl: no proxy, no netrc. Redirects are not followed, so that the token stays with the service.
final class CurlConnection {
    /// The certificates that the client accepts.
    enum Trust {
        /// Those of the authorities of the system, or of a file.
        case authorities(file: String?)
        /// Every certificate.
        case every
    }

    /// A request without a complete response.
    struct Failure {
        let code: CURLcode
        /// The `errno` behind the code; 0: there is none.
        var systemError: Int32 = 0
    }

    /// Time limit for name look-up, TCP and TLS together.
    private static let connectLimit = Duration.seconds(5)
    /// A stream without bytes for this long is broken: the service sends a comment every 15 s.
    private static let silenceLimit = Duration.seconds(45)
    /// The interval at which a waiting request checks for an interruption.
    private static let checkMilliseconds: Int32 = 100

    private static let isReady: Bool = larder_global_init() == CURLE_OK

    private let multi: UnsafeMutableRawPointer
    private let easy: UnsafeMutableRawPointer
    private let address: ServiceAddress
    private let token: MaskedSecret?
    private let trust: Trust

    init(to address: ServiceAddress, token: MaskedSecret?, trust: Trust) throws(ClientError) {
        guard Self.isReady, let multi = curl_multi_init() else { throw Self.unusable }
        guard let easy = curl_easy_init() else {
            curl_multi_cleanup(multi)
            throw Self.unusable
        }
        self.multi = multi
        self.easy = easy
        self.address = address
        self.token = token
        self.trust = trust
    }

    deinit {
        curl_easy_cleanup(easy)
        curl_multi_cleanup(multi)
    }

    /// Sends the request and blocks until the response has ended, or the collector has stopped it. Throws if there is
    /// no complete response, if the user interrupts the command, and the collector's error.
    func perform(_ request: ServiceRequest, into collector: ResponseCollector) throws {
        let failure = try exchange(request, into: collector)
        if let error = collector.failure { throw error }
        guard let failure, !collector.isStopped else { return }
        throw Self.error(of: failure, at: address.description)
    }

    /// Sends the request and blocks until the response has ended. Returns the failure of the connection; nil: there is
    /// none. Throws if the request cannot be made, and if the user interrupts the command.
    func exchange(_ request: ServiceRequest, into collector: ResponseCollector) throws(ClientError) -> Failure? {
        curl_easy_reset(easy)
        let headers = try headers(of: request)
        defer { curl_slist_free_all(headers) }
        try setOptions(request, headers, Unmanaged.passUnretained(collector).toOpaque())
        guard curl_multi_add_handle(multi, easy) == CURLM_OK else { throw Self.unusable }
        defer { curl_multi_remove_handle(multi, easy) }
        let code = try withExtendedLifetime(collector) { () throws(ClientError) in try completion() }
        guard code != CURLE_OK else { return nil }
        var systemError = 0
        larder_easy_get_long(easy, CURLINFO_OS_ERRNO, &systemError)
        return Failure(code: code, systemError: Int32(clamping: systemError))
    }

    /// Drives libcurl until the request has ended; returns libcurl's code.
    private func completion() throws(ClientError) -> CURLcode {
        while true {
            var (running, left): (Int32, Int32) = (0, 0)
            curl_multi_perform(multi, &running)
            if let message = curl_multi_info_read(multi, &left)?.pointee, message.msg == CURLMSG_DONE {
                return message.data.result
            }
            guard !Interruption.isRaised else { throw .interrupted }
            curl_multi_poll(multi, nil, 0, Self.checkMilliseconds, nil)
        }
    }

    /// The header lines; the caller frees the list.
    private func headers(of request: ServiceRequest) throws(ClientError) -> UnsafeMutablePointer<curl_slist>? {
        var lines = ["Accept: \(request.isStream ? "text/event-stream" : "application/json")", "Expect:"]
        if request.body != nil { lines.append("Content-Type: \(request.mediaType)") }
        if !request.lastEventID.isEmpty { lines.append("Last-Event-ID: \(request.lastEventID)") }
        if let token { lines.append("Authorization: Bearer \(token.exposed)") }
        var list: UnsafeMutablePointer<curl_slist>?
        for line in lines {
            guard let longer = curl_slist_append(list, line) else {
                curl_slist_free_all(list)
                throw Self.unusable
            }
            list = longer
        }
        return list
    }

    /// `context` is the collector, unretained: it exists until the request has ended.
    private func setOptions(
        _ request: ServiceRequest, _ headers: UnsafeMutablePointer<curl_slist>?, _ context: UnsafeMutableRawPointer
    ) throws(ClientError) {
        var options: [(CURLoption, Int)] = [
            (CURLOPT_NOSIGNAL, 1), (CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1), (CURLOPT_HTTP09_ALLOWED, 0),
            (CURLOPT_FOLLOWLOCATION, 0), (CURLOPT_NETRC, 0), (CURLOPT_TCP_KEEPALIVE, 1), (CURLOPT_TCP_NODELAY, 1),
            (CURLOPT_CONNECT_ONLY, request.connectsOnly ? 1 : 0),
            (CURLOPT_CONNECTTIMEOUT_MS, Int(Self.connectLimit.wholeMilliseconds)),
            (CURLOPT_TIMEOUT_MS, Int(request.timeout?.wholeMilliseconds ?? 0)),
        ]
        if request.isStream {
            options += [
                (CURLOPT_LOW_SPEED_LIMIT, 1), (CURLOPT_LOW_SPEED_TIME, Int(Self.silenceLimit.components.seconds)),
            ]
        }
        var texts: [(CURLoption, String)] = [
            (CURLOPT_URL, address.url + request.target), (CURLOPT_PROTOCOLS_STR, "http,https"),
            (CURLOPT_PROXY, ""), (CURLOPT_NOPROXY, "*"), (CURLOPT_USERAGENT, "larder/" + LarderCommand.version),
        ]
        if let path = address.socketPath { texts.append((CURLOPT_UNIX_SOCKET_PATH, path)) }
        switch trust {
        case .authorities(let file):
            options += [(CURLOPT_SSL_VERIFYPEER, 1), (CURLOPT_SSL_VERIFYHOST, 2)]
            if let file { texts.append((CURLOPT_CAINFO, file)) }
        case .every: options += [(CURLOPT_SSL_VERIFYPEER, 0), (CURLOPT_SSL_VERIFYHOST, 0)]
        }
        switch request.method {
        case .get: options.append((CURLOPT_HTTPGET, 1))
        case .post:
            options.append((CURLOPT_POST, 1))
            texts.append((CURLOPT_COPYPOSTFIELDS, request.body ?? ""))
        case .delete: texts.append((CURLOPT_CUSTOMREQUEST, request.method.rawValue))
        case .put, .patch:
            texts.append((CURLOPT_CUSTOMREQUEST, request.method.rawValue))
            texts.append((CURLOPT_COPYPOSTFIELDS, request.body ?? ""))
        }
        let codes =
            options.map { larder_easy_set_long(easy, $0.0, $0.1) }
            + texts.map { larder_easy_set_text(easy, $0.0, $0.1) }
            + [
                larder_easy_set_headers(easy, headers), larder_easy_set_on_header(easy, Self.onHead, context),
                larder_easy_set_on_body(easy, Self.onBody, context),
            ]
        guard codes.allSatisfy({ $0 == CURLE_OK }) else { throw Self.unusable }
    }

    private static let onHead: curl_write_callback = { bytes, size, count, context in
        guard let bytes, let collector = collector(context) else { return 0 }
        collector.receivedHead(UnsafeRawBufferPointer(start: bytes, count: size * count))
        return size * count
    }

    private static let onBody: curl_write_callback = { bytes, size, count, context in
        guard let bytes, let collector = collector(context) else { return 0 }
        let piece = UnsafeRawBufferPointer(start: bytes, count: size * count)
        return collector.receivedBody(piece) ? piece.count : Int(CURL_WRITEFUNC_ERROR)
    }

    private static func collector(_ context: UnsafeMutableRawPointer?) -> ResponseCollector? {
        context.map { Unmanaged<ResponseCollector>.fromOpaque($0).takeUnretainedValue() }
    }

    private static let unusable = ClientError(.foreign, "libcurl cannot be used; reinstall it.")
}

/// Errors of libcurl as messages.
extension CurlConnection {
    static func error(of failure: Failure, at url: String) -> ClientError {
        let start = "Start it with `larder serve`, or set --url or LARDER_URL to a running service."
        let (message, remedy): (String, String) =
            switch failure.code {
            case CURLE_COULDNT_CONNECT where failure.systemError == ECONNREFUSED:
                ("No service listens on \(url): the connection was refused.", start)
            case CURLE_COULDNT_CONNECT: ("The connection to \(url) failed.", start)
            case CURLE_COULDNT_RESOLVE_HOST:
                ("The host of \(url) could not be resolved.", "Check --url or LARDER_URL, and the DNS.")
            case CURLE_OPERATION_TIMEDOUT:
                (
                    "\(url) did not respond in time.",
                    "Check the load of the service and the network, then repeat the command."
                )
            case CURLE_PEER_FAILED_VERIFICATION:
                (
                    "The certificate of \(url) is not trusted, or is for another name.",
                    "Check the host in the URL; pass --ca-file for a private certificate authority."
                )
            case CURLE_SSL_CACERT_BADFILE:
                ("The file of certificate authorities cannot be read.", "Check the path in --ca-file.")
            case CURLE_SSL_CONNECT_ERROR:
                ("The TLS handshake with \(url) failed.", "Use http:// if the service has no certificate.")
            case CURLE_GOT_NOTHING, CURLE_RECV_ERROR, CURLE_SEND_ERROR, CURLE_PARTIAL_FILE:
                ("\(url) closed the connection before the end of the response.", "Check the log of the service.")
            case CURLE_UNSUPPORTED_PROTOCOL, CURLE_WEIRD_SERVER_REPLY:
                ("\(url) does not speak HTTP/1.1.", "Use https:// if the service has a certificate.")
            default:
                ("The request to \(url) failed: \(String(cString: curl_easy_strerror(failure.code))).", "Check --url.")
            }
        return ClientError(.unreachable, message, remedy: remedy)
    }
}
