import CacheCore
import HTTPTypes
import Hummingbird

/// Lets requests in to a call, or not.
struct Gate: Sendable {
    let access: AccessRules
    let cors: CORSRules

    /// What a call needs beyond content, which ``admitContent(_:access:)`` decides when the asset is known.
    func admit(_ request: Request, _ need: AccessRules.Need) throws(CacheError) {
        guard need != .content else { return }
        try access.admit(need, authorization: request.headers[.authorization], host: request.head.authority)
        try access.admitOrigin(
            request.headers[.origin], isChanging: request.method != .get && request.method != .head,
            isAllowed: cors.names)
    }

    func admitContent(_ request: Request, access content: OriginSettings.Access) throws(CacheError) {
        try admitContent(
            authorization: request.headers[.authorization], host: request.head.authority, access: content)
    }

    func admitContent(
        authorization: String?, host: String?, access content: OriginSettings.Access
    ) throws(CacheError) {
        try access.admit(
            .content, authorization: authorization, host: host, contentIsPublic: content == .public)
    }
}
