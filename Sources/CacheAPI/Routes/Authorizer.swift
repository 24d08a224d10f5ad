import CacheCore
import HTTPTypes
import Hummingbird

/// Authorizes requests by ``AccessRules`` and ``CORSRules``.
struct Authorizer: Sendable {
    let access: AccessRules
    let cors: CORSRules

    /// Authorizes a request to any route but content. Content is authorized by ``admitContent(_:access:)`` when the
    /// asset's origin is known.
    ///
    /// Throws `.unauthorized` or `.forbidden`.
    func admit(_ request: Request, _ need: AccessRules.Need) throws(CacheError) {
        guard need != .content else { return }
        // The route redeems the ticket. Only authorized clients can get one.
        if need == .ticketOrRead, request.uri.queryParameters["ticket"] != nil { return }
        try access.admit(need, authorization: request.headers[.authorization], host: request.head.authority)
        try access.admitOrigin(
            request.headers[.origin], isChanging: request.method != .get && request.method != .head,
            isAllowed: cors.names)
    }

    /// Authorizes a content request on the regular path. Throws `.unauthorized` or `.forbidden`.
    func admitContent(_ request: Request, access content: OriginSettings.Access) throws(CacheError) {
        try admitContent(
            authorization: request.headers[.authorization], host: request.head.authority, access: content)
    }

    /// The same rule for callers that have the fields only (fast path).
    func admitContent(
        authorization: String?, host: String?, access content: OriginSettings.Access
    ) throws(CacheError) {
        try access.admit(
            .content, authorization: authorization, host: host, contentIsPublic: content == .public)
    }
}
