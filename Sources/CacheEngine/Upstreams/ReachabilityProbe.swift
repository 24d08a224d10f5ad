package import CacheCore

/// A request for the head of a base URL, without a cache, to learn whether the upstream answers.
package enum ReachabilityProbe {
    /// The status of the response to a HEAD request with the header fields of the origin. Redirects are not followed.
    /// Throws the error of the transfer.
    package static func status(
        of url: String, _ settings: OriginSettings, over upstream: any Upstream, timeout: Duration
    ) async throws(CacheError) -> Int {
        var request = UpstreamRequest(
            method: .head, url: url, originHeaders: settings.headers, originName: "(reachability)",
            timeouts: TransferTimeouts(all: timeout), allowPrivateAddresses: settings.allowPrivateAddresses,
            tls: settings.tls)
        request.followsRedirects = false
        do {
            return try await upstream.head(of: request).status
        } catch {
            throw error.error
        }
    }
}
