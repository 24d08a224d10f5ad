/// Authorizes a request at the moment when it is sent, so that retries and repeated hops are authorized anew.
package protocol RequestAuthorizer: Sendable {
    /// The region that requests are signed for; nil: they are not signed for one.
    var region: String? { get }

    /// Called on a thread of the upstream client, for each hop to the origin's own host, and to that of its bucket in
    /// another region. Must not block. Throws the error that ends the transfer.
    func authorize(_ request: OutgoingRequest) throws(CacheError) -> AuthorizedFields
}

extension RequestAuthorizer {
    package var region: String? { nil }
}

/// A request that is about to be sent.
package struct OutgoingRequest: Sendable {
    /// The HTTP method.
    package var method: String
    package var url: UpstreamURL
    /// All header fields that are determined so far, `Range` included.
    package var headers: HeaderList
    /// The region of the bucket, as a redirect has stated it; nil: that of the settings.
    package var region: String?

    package init(method: String, url: UpstreamURL, headers: HeaderList, region: String? = nil) {
        self.method = method
        self.url = url
        self.headers = headers
        self.region = region
    }
}

/// What authorizes a request.
package struct AuthorizedFields: Hashable, Sendable {
    /// The URL to send the request to; it differs from that of the request in its query only.
    package var url: String
    /// Header fields that are added; they replace those of the same name.
    package var headers: HeaderList

    package init(url: String, headers: HeaderList = [:]) {
        self.url = url
        self.headers = headers
    }
}
