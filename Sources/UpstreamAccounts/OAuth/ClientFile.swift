import CacheCore

/// The client of an authorization server, from a JSON file: a client as Google writes it (`installed`, `web`,
/// `authorized_user`, `service_account`) or an object with the same members.
struct ClientFile: Sendable {
    /// The place of the client's secret in token requests (RFC 6749 §2.3.1).
    enum Authentication: String, Sendable {
        /// `Authorization: Basic`.
        case basic
        /// The body.
        case post
    }

    /// `client_id`.
    let id: String?
    /// `client_secret`.
    let secret: String?
    /// `auth`; `basic` by default.
    let authentication: Authentication
    /// `refresh_token`.
    let refreshToken: String?
    /// `token_uri`.
    let tokenURL: String?
    /// `private_key`, in PEM.
    let privateKey: String?
    /// `private_key_id`.
    let privateKeyID: String?
    /// `algorithm` of the private key's signatures; RS256 by default. The name is checked when the key is used.
    let algorithm: String
    /// `issuer`, otherwise `client_email`, otherwise the client's ID.
    let issuer: String?
    /// `subject`.
    let subject: String?
    /// Whether the file is a key of a Google service account; it expects the scope as a claim.
    let isServiceAccount: Bool

    /// Parses the file. Throws `.upstreamProtocol` with the name of an invalid member, never with its value.
    init(_ bytes: [UInt8]) throws(CacheError) {
        // The parser's own error could contain a part of the file.
        guard let document = try? JSONParser.parse(bytes), case .object = document else {
            throw CacheError(.upstreamProtocol, "The OAuth client file is not a JSON object.")
        }
        let json = document["installed"] ?? document["web"] ?? document
        func text(_ name: String) throws(CacheError) -> String? {
            switch json[name] {
            case nil, .null: return nil
            case .string(let text) where !text.isEmpty: return text
            default: throw CacheError(.upstreamProtocol, "The OAuth client file contains an invalid \(name).")
            }
        }
        id = try text("client_id")
        secret = try text("client_secret")
        guard let authentication = Authentication(rawValue: try text("auth") ?? "basic") else {
            throw CacheError(.upstreamProtocol, "The member auth of the OAuth client file must be basic or post.")
        }
        self.authentication = authentication
        refreshToken = try text("refresh_token")
        tokenURL = try text("token_uri")
        privateKey = try text("private_key")
        privateKeyID = try text("private_key_id")
        algorithm = try text("algorithm") ?? "RS256"
        let email = try text("client_email")
        issuer = try text("issuer") ?? email ?? id
        subject = try text("subject")
        isServiceAccount = try text("type") == "service_account"
    }
}

extension ClientFile: CustomStringConvertible {
    /// Without the secrets.
    var description: String { "ClientFile" }
}
