import CacheCore
import UpstreamAccounts

/// The API call that returns the link to a target's content.
struct LinkCall {
    let target: AssetTarget
    let upstreams: Upstreams
    let wallClock: any WallClock
    private var resolution: LinkResolution { target.settings.resolution }

    /// The number of calls of one resolution: a transient failure is repeated once.
    private static let maxCalls = 2
    /// The largest response in bytes.
    private static let bodyLimit = 1 << 20

    /// Makes the call and returns the link with its end of use.
    ///
    /// Throws the transfer's error, `.upstreamRefused` with the status of the API, `.upstreamUnusable` if its response
    /// contains no link, and `.upstreamForbidden` if the link leads to a host that `resolve.hosts` does not permit.
    ///
    /// - Parameter renew: Obtains other credentials after a refusal, by one call for all who need them.
    func link(
        account: UpstreamAccount?, renew: () async throws(CacheError) -> Void
    ) async throws(CacheError) -> (url: String, expiresAt: Timestamp?) {
        let request = try request()
        for call in 1...Self.maxCalls {
            let access = UpstreamAccess(account: account, settings: target.settings, wallClock: wallClock)
            var authorized = request
            access.apply(to: &authorized)
            let response: UpstreamResponse
            do throws(CacheError) {
                response = try await upstreams.client.exchange(authorized, bodyLimit: Self.bodyLimit)
            } catch  where error.code.isWorthRetrying && call < Self.maxCalls {
                continue
            }
            if (200..<400).contains(response.status) { return try link(in: response, of: request) }
            let document = ErrorDocument(response.body)
            let isRefused = access.accountRefused(status: response.status, headers: response.headers, document)
            if isRefused, call < Self.maxCalls {
                try await renew()
            } else if !CacheError.Code.isOfFailingServer(response.status) || call == Self.maxCalls {
                throw refusal(response, document)
            }
        }
        throw CacheError(.internal, "No call for a link was made.")
    }

    private func refusal(_ response: UpstreamResponse, _ document: ErrorDocument) -> CacheError {
        let wait = RetryAfter.wait(in: response.headers, now: wallClock.now())
        return CacheError(
            .upstreamRefused(
                status: response.status, .init(retryAfter: wait, reason: document.reason)),
            "The API of the origin \(target.originName) answered \(response.status) instead of a link.")
    }

    /// The call. Throws `.invalidField` if the URL is malformed.
    private func request() throws(CacheError) -> UpstreamRequest {
        guard let template = resolution.url else { throw CacheError(.internal, "The origin has no resolve.url.") }
        let path = try Self.path(of: target, over: upstreams)
        var request = upstreams.request(to: target, priority: .live)
        request.url = template.replacing("{path}", with: PercentEncoding.encoded(path.utf8, keeping: "/"))
        request.method = resolution.method == .get ? .get : .post
        // The limit of the origin, apart from its content.
        request.originName = target.originName + " (links)"
        request.followsRedirects = false
        if let body = resolution.body {
            // A JSON string without its quotation marks.
            request.body = Array(body.replacing("{path}", with: JSON.string(path).text.dropFirst().dropLast()).utf8)
            request.headers.set("Content-Type", "application/json")
        }
        return request
    }

    /// The decoded path below the mount. Throws `.malformedRequest` if it is not UTF-8.
    static func path(of target: AssetTarget, over upstreams: Upstreams) throws(CacheError) -> String {
        let base = try upstreams.client.parse(url: target.settings.baseURL).path
        var rest = target.path[...]
        if rest.hasPrefix(base) { rest = rest.dropFirst(base.count) }
        while rest.hasPrefix("/") { rest.removeFirst() }
        guard let path = String(validating: PercentEncoding.decoded(rest), as: UTF8.self) else {
            throw CacheError(.malformedRequest, "The path is not valid UTF-8.")
        }
        return path
    }

    /// The link in a response, and the end of its use.
    private func link(
        in response: UpstreamResponse, of request: UpstreamRequest
    ) throws(CacheError) -> (url: String, expiresAt: Timestamp?) {
        let text = try text(in: response)
        let link: UpstreamURL
        do {
            link = try upstreams.client.parse(url: text)
        } catch {
            throw CacheError(
                .upstreamUnusable(), "The API of the origin \(target.originName) returned no usable link.")
        }
        let call = try upstreams.client.parse(url: request.url)
        guard link.isSameHost(as: call) || HostPatterns(resolution.hosts).contains(link) else {
            throw CacheError(
                .upstreamForbidden,
                "The API of the origin \(target.originName) returned a link to \(link.bracketedHost):\(link.port), "
                    + "which resolve.hosts does not permit.")
        }
        if call.scheme == .https, link.scheme == .http {
            throw CacheError(
                .upstreamForbidden, "The API of the origin \(target.originName) returned a link without TLS.")
        }
        let now = wallClock.now()
        let stated = SignedLinkExpiry.expiry(of: link.text).map { $0 - .seconds(5) }
        return (link.text, resolution.lifetime.map { now + $0 * 9 / 10 } ?? stated)
    }

    /// The text of the link: at the JSON pointer, in `Location`, or as the whole body.
    private func text(in response: UpstreamResponse) throws(CacheError) -> String {
        let missing = CacheError(
            .upstreamUnusable(), "The API of the origin \(target.originName) returned no link (see resolve.pointer).")
        if let pointer = resolution.pointer {
            guard let link = (try? JSONParser.parse(response.body))?.value(at: pointer)?.string else { throw missing }
            return link
        }
        if let location = response.headers["Location"] { return location }
        guard let body = String(validating: response.body, as: UTF8.self) else { throw missing }
        guard let link = body.split(whereSeparator: \.isWhitespace).first else { throw missing }
        return String(link)
    }
}
