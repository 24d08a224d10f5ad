/// Authorizes a request at the moment at which it is sent, so that retries and repeated hops are authorized anew.
package protocol RequestAuthorizer: Sendable {
    /// Called on a thread of the upstream client, for each hop to the origin's own host. Must not block. Throws the error
    /// that ends the transfer.
    func authorize(_ request: OutgoingRequest) throws(CacheError) -> AuthorizedFields
}

/// A request that is about to be sent.
package struct OutgoingRequest: Sendable {
    /// The HTTP method.
    package var method: String
    package var url: UpstreamURL
    /// All header fields that are determined so far, `Range` included.
    package var headers: HeaderList

    package init(method: String, url: UpstreamURL, headers: HeaderList) {
        self.method = method
        self.url = url
        self.headers = headers
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
