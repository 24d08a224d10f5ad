import CacheCore
import WebTokens

/// Token requests of OAuth 2.0 (RFC 6749 §3.2).
struct TokenEndpoint: Sendable {
    /// A successful response (RFC 6749 §5.1).
    struct Response: Sendable {
        /// A secret.
        var accessToken: String
        /// The lifetime from the arrival of the response.
        var lifetime: Duration
        /// A secret; nil: the refresh token stays valid.
        var refreshToken: String?
    }

    /// The lifetime of tokens whose response states none.
    static let defaultLifetime = Duration.seconds(3600)
    /// The longest lifetime in seconds, ten years.
    private static let longestLifetime: Int64 = 315_360_000

    let url: String
    let exchange: AccountExchange

    /// Requests a token. Throws `.upstreamRefused` with the error code of the response (RFC 6749 §5.2), and
    /// `.upstreamProtocol` for an unusable response. No error contains a secret or the server's own text.
    ///
    /// - Parameters:
    ///   - fields: The parameters of the grant.
    ///   - client: The client that authenticates itself; nil: the grant needs none.
    func request(_ fields: [(name: String, value: String?)], by client: ClientFile?) async throws(CacheError)
        -> Response
    {
        guard OriginAuth.isPermittedEndpoint(url), ServiceURL(url) != nil else {
            throw CacheError(.upstreamForbidden, "The token endpoint must be an https URL or have a loopback address.")
        }
        var (fields, headers): (_, HeaderList) = (
            fields, ["Content-Type": FormBody.type, "Accept": "application/json"]
        )
        if let client, let id = client.id {
            if let secret = client.secret, client.authentication == .basic {
                headers.append("Authorization", Self.basic(id, secret))
            } else {
                fields += [("client_id", id), ("client_secret", client.secret)]
            }
        }
        let response = try await exchange.send(
            UpstreamRequest(.post, url, headers: headers, body: FormBody(fields).bytes))
        return try Self.parse(response)
    }

    /// The value of `Authorization`: ID and secret are form-encoded first (RFC 6749 §2.3.1).
    private static func basic(_ id: String, _ secret: String) -> String {
        let pair = PercentEncoding.encoded(id) + ":" + PercentEncoding.encoded(secret)
        let text = Base64URL.encode(pair.utf8).map { $0 == "-" ? "+" : $0 == "_" ? "/" : $0 }
        return "Basic " + String(text) + String(repeating: "=", count: (4 - text.count % 4) % 4)
    }

    private static func parse(_ response: UpstreamResponse) throws(CacheError) -> Response {
        // The body of an error need not be JSON, and the parser's error could contain a part of the body.
        let json = try? JSONParser.parse(response.body)
        let code = json?["error"]?.string.map { " and error \(ErrorCode.shown($0))" } ?? ""
        guard response.status == 200 else {
            throw CacheError(
                .upstreamRefused(status: response.status),
                "The token endpoint refused the request with status \(response.status)\(code).")
        }
        guard let json, let token = json["access_token"]?.string, !token.isEmpty,
            token.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
        else {
            throw CacheError(
                .upstreamProtocol, "The response of the token endpoint with status 200\(code) contains no access token."
            )
        }
        if let type = json["token_type"]?.string, !["bearer", "oauth"].contains(FieldText.lowered(type)) {
            throw CacheError(.upstreamProtocol, "The token endpoint returned a token of another type than Bearer.")
        }
        let refreshToken = json["refresh_token"]?.string.flatMap { $0.isEmpty ? nil : $0 }
        return Response(
            accessToken: token, lifetime: try lifetime(json["expires_in"]), refreshToken: refreshToken)
    }

    /// `expires_in` in seconds; some servers write it as a string.
    private static func lifetime(_ value: JSON?) throws(CacheError) -> Duration {
        let seconds: Int64? =
            switch value {
            case nil, .null: defaultLifetime.components.seconds
            case .integer(let seconds): seconds
            case .number(let seconds): Int64(exactly: seconds.rounded(.down))
            case .string(let text): Int64(text)
            default: nil
            }
        guard let seconds, seconds > 0 else {
            throw CacheError(.upstreamProtocol, "The response of the token endpoint contains an invalid expires_in.")
        }
        return .seconds(min(seconds, longestLifetime))
    }
}
