import CCurl
import CacheCore

/// Hops: connections and redirects of one exchange, and the checks that depend on the hop.
extension CurlExchange {
    private static let maxRedirects = 5

    /// Whether only the end of the connection delimits the body, over TLS. Such a body is complete only if a closure
    /// alert precedes the end (RFC 9112 §9.8); libcurl accepts an end without one.
    var hasUntoldEnd: Bool {
        guard url.scheme == .https, transfer.request.method != .head, !isHTTP2, ![204, 304].contains(collector.status)
        else { return false }
        let codings = collector.headers["Transfer-Encoding"].map { FieldText.lowered($0[...]) } ?? ""
        return collector.headers["Content-Length"] == nil && !codings.contains("chunked")
    }

    /// Makes the redirect's target the current hop. Throws `.upstreamUnusable` if the limit of redirects is exceeded,
    /// `.upstreamForbidden` if the target's host is not permitted, and the errors of `CurlURL.resolve`.
    func follow(_ location: String) throws(CacheError) {
        guard earlier.count < Self.maxRedirects else {
            throw CacheError(
                .upstreamUnusable(),
                "\(place) exceeded the limit of \(Self.maxRedirects) redirects.")
        }
        let target = try CurlURL.resolve(location, from: url)
        guard permitsRedirect(to: target) else {
            throw CacheError(
                .upstreamForbidden,
                "\(place) redirects to \(target.bracketedHost):\(target.port), "
                    + "which redirectHosts of the origin does not permit.")
        }
        bucketRegion = region(of: target)
        url = target
        earlier.append(RedirectHead(status: collector.status, headers: collector.headers))
        let now = now()
        timers.hopBegan(at: now)
        clock.hopBegan(at: now)
        collector = HeadCollector(maxBytes: settings.maxHeaderBytes, maxLines: settings.maxHeaderLines)
        body = .awaited
        drained = 0
        rest = nil
        isShut = false
        hop = HopConnection()
    }

    /// Makes the known endpoint of the bucket's region the first hop, as if the origin had redirected to it.
    func startInRegion() {
        guard let own = transfer.request.authorizer?.region, let known = transfer.request.region,
            // An endpoint that cannot be parsed is not used: the origin redirects again.
            let target = known.moved(url.text).flatMap({ try? CurlURL.parse($0) }), permitsRedirect(to: target),
            BucketRegion.isSameService(firstURL, target, in: [own, known.region])
        else { return }
        (url, bucketRegion) = (target, known.region)
    }

    /// The region for which a request to the target of the current redirect is signed; nil: no credentials are sent
    /// there, or those of the own host.
    private func region(of target: UpstreamURL) -> String? {
        guard let own = transfer.request.authorizer?.region,
            let stated = BucketRegion.stated(status: collector.status, headers: collector.headers),
            BucketRegion.isSameService(firstURL, target, in: [own, stated])
        else { return nil }
        return stated
    }

    /// The target of a redirect that states the region of the bucket and no `Location`; nil: it is none, or the request
    /// was signed for this region already.
    private var regionalTarget: String? {
        guard let own = transfer.request.authorizer?.region, isOwnHost || bucketRegion != nil,
            let stated = BucketRegion.stated(status: collector.status, headers: collector.headers)
        else { return nil }
        let signed = bucketRegion ?? own
        return stated == signed ? nil : BucketRegion.moved(url, from: signed, to: stated)
    }

    /// Whether a redirect may lead to the host of `target`: that of the first URL, another one of the origin, or one
    /// that the origin's settings permit.
    private func permitsRedirect(to target: UpstreamURL) -> Bool {
        guard let hosts = transfer.request.redirectHosts, !target.isSameHost(as: firstURL) else { return true }
        return hosts.patterns.contains(target)
            // An unparsable URL of the origin permits nothing.
            || hosts.ownURLs.contains { (try? CurlURL.parse($0))?.isSameHost(as: target) ?? false }
    }

    /// The step of the current hop that has not ended.
    var step: TransferStep {
        if timers.isConnected { return timers.isResponding ? .body : .firstByte }
        // libcurl states the time of the TCP connection only after that of TLS.
        if let socket = hop.openedSocket { return OpenedSockets.isConnected(socket) ? .tls : .connect }
        return hop.hasLookedUp ? .nameLookup : .sharedConnection
    }

    /// The current hop's response head, as passed to the delegate.
    func head() -> UpstreamHead {
        clock.note(easy)
        var head = UpstreamHead(
            status: collector.status, headers: collector.headers, finalURL: url.text, redirects: earlier.count,
            httpVersion: collector.version, timings: clock.timings(at: nil))
        head.earlier = earlier
        // libcurl repeats a stream over another connection only if it was reset with HTTP_1_1_REQUIRED.
        head.requiredHTTP1 = hop.wasSentAsStream && !isHTTP2
        head.address = remote
        return head
    }

    /// Whether the current response is a whole body instead of a window. Its transfer has no total timeout, because its
    /// length is unbounded.
    var isWholeBody: Bool {
        transfer.request.method == .get && (collector.status != 206 || transfer.request.window == .whole)
    }

    /// The redirect target of the current response; nil if it is no redirect, or has neither Location nor the region of
    /// a bucket.
    var redirectTarget: String? {
        guard transfer.request.followsRedirects, [301, 302, 303, 307, 308].contains(collector.status) else {
            return nil
        }
        return collector.headers["Location"].flatMap { $0.isEmpty ? nil : $0 } ?? regionalTarget
    }

    /// Counts the current hop's connection as opened or reused.
    func countConnection() {
        var opened = 0
        larder_easy_get_long(easy, CURLINFO_NUM_CONNECTS, &opened)
        guard timers.isConnected || opened > 0 else { return }
        if opened > 0 { connections.opened += opened } else { connections.reused += 1 }
    }
}
