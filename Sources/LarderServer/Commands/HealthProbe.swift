import CCurl
import CacheCore

/// One `GET` to the listener of a service; it returns the status only.
struct HealthProbe {
    /// The reason of a failed probe, as a predicate that follows the address.
    struct Refusal: Error {
        let reason: String

        init(_ reason: String) { self.reason = reason }
    }

    /// The part of an exchange that a probe without credentials can make.
    enum Extent: Hashable {
        case request
        /// The listener refuses the request: only a connection is made, with its TLS handshake.
        case connection
    }

    /// The address to connect to.
    let address: ListenAddress
    /// The request target.
    let path: String
    /// Whether the connection uses TLS.
    let isEncrypted: Bool
    let extent: Extent

    init(address: ListenAddress, path: String, isEncrypted: Bool = false, extent: Extent = .request) {
        self.address = address
        self.path = path
        self.isEncrypted = isEncrypted
        self.extent = extent
    }

    /// A probe of the configured listener. A listener that requires a PROXY header or client certificates refuses the
    /// request, so only the connection is probed; before a PROXY header there is no TLS.
    init(_ listen: ListenSettings, path: String) {
        let isProxied = listen.proxyProtocol == .required
        let needsCertificate = listen.clientCAFile != nil && listen.clientAuthentication == .required
        self.init(
            address: listen.address.dialable, path: path, isEncrypted: listen.certificateFile != nil && !isProxied,
            extent: isProxied || needsCertificate ? .connection : .request)
    }

    /// Parses `http://host[:port][/path]` and `unix:/path` of a socket; nil for any other text. The default port is 80, the
    /// default path is `/health/ready`.
    init?(url: String) {
        if case .unix(let path)? = ListenAddress(url) {
            self.init(address: .unix(path: path), path: "/health/ready")
            return
        }
        guard url.hasPrefix("http://") else { return nil }
        let rest = url.dropFirst(7)
        let authority = String(rest.prefix { $0 != "/" })
        let path = String(rest.dropFirst(authority.count))
        guard let address = ListenAddress(authority) ?? ListenAddress("\(authority):80"), case .host = address,
            path.utf8.allSatisfy({ $0 > 32 && $0 < 127 })
        else { return nil }
        self.init(address: address, path: path.isEmpty ? "/health/ready" : path)
    }

    /// The status of the response; 200 if only a connection is made. Blocks its thread, at most for `limit`. Throws
    /// `Refusal`.
    ///
    /// The certificate is not verified: the probe asks whether the service is alive, sends no secret, and connects to an
    /// address that is rarely a name in the certificate.
    func ask(within limit: Duration) throws(Refusal) -> Int {
        let service = ServiceAddress(address, isEncrypted: isEncrypted)
        let collector = ResponseCollector(url: service.description)
        var request = ServiceRequest(.get, path)
        request.connectsOnly = extent == .connection
        request.timeout = limit
        let failure: CurlConnection.Failure?
        do throws(ClientError) {
            failure = try CurlConnection(to: service, token: nil, trust: .every).exchange(request, into: collector)
        } catch {
            throw Refusal("cannot be asked: \(error.message)")
        }
        // The head states the readiness; the rest of the response does not matter.
        if collector.status > 0 { return collector.status }
        guard let failure else { return 200 }
        throw Self.refusal(failure)
    }

    private static func refusal(_ failure: CurlConnection.Failure) -> Refusal {
        switch failure.code {
        case CURLE_COULDNT_RESOLVE_HOST: Refusal("does not resolve to an address")
        case CURLE_COULDNT_CONNECT: Refusal("accepts no connection")
        case CURLE_SSL_CONNECT_ERROR: Refusal("completed no TLS handshake")
        case CURLE_UNSUPPORTED_PROTOCOL, CURLE_WEIRD_SERVER_REPLY: Refusal("sent a response that is not HTTP/1.1")
        case CURLE_OPERATION_TIMEDOUT: Refusal("sent no response in time")
        case CURLE_GOT_NOTHING, CURLE_RECV_ERROR, CURLE_SEND_ERROR: Refusal("sent no response")
        default: Refusal("sent no response (\(String(cString: curl_easy_strerror(failure.code))))")
        }
    }
}
