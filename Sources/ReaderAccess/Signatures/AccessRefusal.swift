/// The refusal of a request because of a signed URL or a token's limits. It carries no secret.
package struct AccessRefusal: Error, Hashable, Sendable {
    /// The problem type of the response, always with the status 403.
    package enum Reason: String, Hashable, Sendable, CaseIterable {
        /// The signature was valid and has ended.
        case tokenExpired
        /// The signature is malformed, forged, or from an unknown key.
        case tokenInvalid
        /// The signature or token is valid for other content.
        case tokenScope
    }

    package var reason: Reason
    /// One sentence that names the missing permission.
    package var message: String

    package init(_ reason: Reason, _ message: String) {
        self.reason = reason
        self.message = message
    }

    /// The refusal of a malformed signature, without a hint about the part.
    static let malformed = AccessRefusal(.tokenInvalid, "The URL signature is malformed; request a new signed URL.")
    /// The refusal of a signature with a wrong code.
    static let forged = AccessRefusal(
        .tokenInvalid, "The URL signature does not match this URL; request a signed URL for it.")
    /// The refusal of a signature from a key that is not in the directory.
    static let unknownKey = AccessRefusal(
        .tokenInvalid, "The key of the URL signature is unknown; request a URL that is signed with a current key.")
    /// The refusal of an ended signature.
    static let expired = AccessRefusal(.tokenExpired, "The URL signature has expired; request a new signed URL.")
    /// The refusal of a path outside the signed prefix.
    static let outside = AccessRefusal(
        .tokenScope, "The URL signature does not grant the permission to read this path.")
}
