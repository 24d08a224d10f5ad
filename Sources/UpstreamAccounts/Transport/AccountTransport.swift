package import CacheCore

/// A request to a token endpoint, an STS endpoint or a metadata service. It contains secrets.
package struct AccountRequest: Hashable, Sendable {
    /// The methods of these requests.
    package enum Method: String, Hashable, Sendable {
        case get = "GET"
        case post = "POST"
        case put = "PUT"
    }

    /// The addresses to which the request may be sent.
    package enum Destination: Hashable, Sendable {
        /// Those that are permitted for origins. The URL has the scheme https or a loopback host.
        case service
        /// Loopback addresses and the fixed link-local addresses of metadata services
        /// (``OriginAuth/metadataHosts``), without a proxy.
        case metadata
    }

    package var method: Method
    /// An absolute URL.
    package var url: String
    package var headers: HeaderList
    package var body: [UInt8]
    /// The limit for the whole exchange.
    package var timeout: Duration
    package var destination: Destination
}

extension AccountRequest: CustomStringConvertible {
    /// Without query, fields and body; they contain secrets.
    package var description: String { "\(method.rawValue) \(url.prefix { $0 != "?" })" }
}

/// The response to an ``AccountRequest``. Redirects are not followed, because requests contain secrets.
package struct AccountResponse: Sendable {
    package var status: Int
    package var headers: HeaderList
    package var body: [UInt8]

    package init(status: Int, headers: HeaderList = [:], body: [UInt8] = []) {
        self.status = status
        self.headers = headers
        self.body = body
    }
}

extension AccountResponse: CustomStringConvertible {
    /// Without fields and body; they contain secrets.
    package var description: String { "status \(status)" }
}

/// Sends the requests of accounts.
package protocol AccountTransport: Sendable {
    /// Returns the response of any status, with at most ``AccountDependencies/bodyLimit`` bytes of body. Throws if
    /// there is no complete response; the error contains neither fields nor body of the request.
    func send(_ request: AccountRequest) async throws(CacheError) -> AccountResponse
}
