import CCurl
import CacheCore

extension CurlExchange {
    /// A socket was made for the present hop.
    func opened(_ socket: Int32) {
        hasOpenedSocket = true
        sockets.opened(socket)
    }

    /// False where bytes wait on a kept connection before anything is asked on it: they answer nothing, and what follows
    /// cannot be told from them (RFC 9112 §9.2). The request is made on a new connection instead.
    func mayUse(localPort: Int32, remotePort: Int32) -> Bool {
        // TLS has records of its own on an idle connection.
        guard url.scheme == .http, !hasOpenedSocket, !needsFreshConnection else { return true }
        needsFreshConnection = sockets.haveInput(localPort: localPort, remotePort: remotePort)
        return !needsFreshConnection
    }

    /// Whether only the connection's end could tell where the body ends, and that over TLS, where libcurl does not tell a
    /// peer's farewell from a connection that was cut (RFC 9112 §9.8): such a body is never known to be whole.
    var hasUntoldEnd: Bool {
        guard url.scheme == .https, transfer.request.method == .get, !isHTTP2,
            (200..<300).contains(collector.status)
        else { return false }
        let codings = collector.headers["Transfer-Encoding"].map { FieldText.lowered($0[...]) } ?? ""
        return collector.headers["Content-Length"] == nil && !codings.contains("chunked")
    }

    /// Makes the redirect's target the present hop; throws where it must not be followed.
    func follow(_ location: String) throws(CacheError) {
        guard earlier.count < transfer.request.maxRedirects else {
            throw CacheError(
                .upstreamUnusable(),
                "\(place) redirects further than the \(transfer.request.maxRedirects) hops allowed.")
        }
        url = try CurlURL.resolve(location, from: url)
        earlier.append(RedirectHead(status: collector.status, headers: collector.headers))
        let now = ContinuousClock.now
        timers.hopBegan(at: now)
        clock.hopBegan(at: now)
        collector = HeadCollector(maxBytes: settings.maxHeaderBytes, maxLines: settings.maxHeaderLines)
        body = .awaited
        drained = 0
        rest = nil
        isShut = false
        forbidden = nil
        socketError = 0
        needsFreshConnection = false
        hasOpenedSocket = false
    }

    /// The present hop's head, as the delegate is told of it.
    func head() -> UpstreamHead {
        clock.note(easy)
        var head = UpstreamHead(
            status: collector.status, headers: collector.headers, finalURL: url.text, redirects: earlier.count,
            httpVersion: collector.version, timings: clock.timings(at: nil))
        head.earlier = earlier
        head.address = remote
        return head
    }

    /// Whether the present response is no window: it may be as long as it likes, as long as it goes on.
    var isWholeBody: Bool {
        transfer.request.method == .get && (collector.status != 206 || transfer.request.window == .whole)
    }

    /// Where the present response leads, if elsewhere.
    var redirectTarget: String? {
        guard [301, 302, 303, 307, 308].contains(collector.status) else { return nil }
        return collector.headers["Location"].flatMap { $0.isEmpty ? nil : $0 }
    }

    func countConnection() {
        var opened = 0
        larder_easy_get_long(easy, CURLINFO_NUM_CONNECTS, &opened)
        guard timers.isConnected || opened > 0 else { return }
        if opened > 0 { connections.opened += opened } else { connections.reused += 1 }
    }
}
