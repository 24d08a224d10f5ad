package import CacheCore

/// What one request to an origin has shown. The origin need not be mounted, and nothing of the test is kept.
package struct OriginTest: Sendable {
    package enum Outcome: String, Sendable, CaseIterable {
        case succeeded
        /// The upstream answered with a status that is not the content.
        case refused
        /// The upstream did not answer.
        case failed
    }

    /// The name of an origin in a test with other settings, so that the circuits, credentials and figures of a mounted one
    /// stay as they are. No origin can have it.
    static let origin = "(test)"
    /// The time for an answer.
    package static let timeout = Duration.seconds(5)

    package var outcome: Outcome
    /// The URL of the request without its query, which may be a signature.
    package var url: String
    /// The URL of the response after redirects, likewise without its query.
    package var finalURL: String { head.map(\.finalURL.withoutQuery) ?? url }
    /// Nil without an answer.
    package var head: UpstreamHead?
    /// Nil after a success.
    package var error: CacheError?
    package var timings: TransferTimings
}

extension Prober {
    /// Requests the first byte of a file from an origin, as a fill would, with its credentials, its links and the address
    /// guard. Without a path the base URL is requested: any answer but a refusal of the credentials shows that the upstream
    /// can be reached.
    ///
    /// - Parameter present: The mounted origin of that name. Its credentials are used if those of `origin` are equal.
    ///
    /// Throws `.malformedRequest` for an invalid path.
    package func test(_ origin: Origin, path: String?, present: Origin?) async throws(CacheError) -> OriginTest {
        var tested = origin
        let isSame =
            present?.settings.auth == origin.settings.auth && present?.settings.resolution == origin.settings.resolution
        if !isSame { tested.name = OriginTest.origin }
        let target = try resolver.tested(tested, path)
        let request = HeadProbe(target: target, over: upstreams, tracer: tracer, priority: .live, isTest: true)
        do throws(CacheError) {
            let head = try await withDeadline(OriginTest.timeout, .total, clock: clock) {
                () async throws(CacheError) -> UpstreamHead in
                var request = request
                do throws(ProbeFailure) {
                    return try await request.ask(.get, for: path == nil ? .whole : .first)
                } catch {
                    throw CacheError(error.error.code, error.error.message, cause: error)
                }
            }
            let error = Self.refusal(head, hasPath: path != nil)
            return OriginTest(
                outcome: error == nil ? .succeeded : .refused, url: target.url.withoutQuery, head: head, error: error,
                timings: head.timings)
        } catch {
            let timings = (error.cause as? ProbeFailure)?.timings ?? TransferTimings()
            return OriginTest(outcome: .failed, url: target.url.withoutQuery, error: error, timings: timings)
        }
    }

    /// The error of a status that is not the content.
    private static func refusal(_ head: UpstreamHead, hasPath: Bool) -> CacheError? {
        let advice: String
        switch head.status {
        case 200..<300: return nil
        case 401, 403, 407: advice = "check the credentials and their permission to read"
        case 300..<400: advice = "a redirect that cannot be followed; check redirectHosts"
        case 404, 410: advice = "check baseURL and the path"
        case 416 where hasPath: return nil  // an empty file
        case 429, 500...: advice = "the server is busy or failing; try again later"
        default: advice = "the server refuses the request"
        }
        if !hasPath, (300..<500).contains(head.status), ![401, 403, 407, 429].contains(head.status) { return nil }
        return CacheError(
            .upstreamRefused(status: head.status), "The upstream answered with status \(head.status): \(advice).")
    }
}
