package import CacheCore

/// Download of a small document that the configuration names, such as a JWK set, over the same client as content.
package enum DocumentDownload {
    /// The largest document in bytes.
    private static let bodyLimit = 1 << 20

    /// The body of the response. Redirects are not followed. Private and loopback addresses are permitted, because only
    /// the administrator chooses the URL.
    ///
    /// Throws `.upstreamRefused` for a status other than 200, and the errors of the transfer. The errors do not contain
    /// the query of the URL.
    package static func get(
        _ url: String, over upstream: any Upstream, timeout: Duration = .seconds(10)
    ) async throws(CacheError) -> [UInt8] {
        var request = UpstreamRequest(
            method: .get, url: url, originName: "(documents)",
            timeouts: TransferTimeouts(all: timeout), allowPrivateAddresses: true)
        request.followsRedirects = false
        let response = try await upstream.exchange(request, bodyLimit: bodyLimit)
        guard response.status == 200 else {
            throw CacheError(
                .upstreamRefused(status: response.status), "The server answered with status \(response.status).")
        }
        return response.body
    }
}
