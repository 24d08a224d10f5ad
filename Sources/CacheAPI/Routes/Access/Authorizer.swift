import CacheCore
import CacheEngine
import HTTPTypes
import ReaderAccess

/// Authorizes requests by ``AccessRules`` and ``CORSRules``.
struct Authorizer: Sendable {
    /// The rules in force.
    let live: LiveAPISettings
    /// The clock that the expiry of tokens is compared with.
    let wallClock: any WallClock
    /// Whether clients use https.
    let isEncrypted: Bool

    init(_ live: LiveAPISettings, wallClock: any WallClock, isEncrypted: Bool = false) {
        self.live = live
        self.wallClock = wallClock
        self.isEncrypted = isEncrypted
    }

    /// Rules that never change.
    init(access: AccessRules, cors: CORSRules, wallClock: any WallClock) {
        self.init(LiveAPISettings(.init(access: access, cors: cors)), wallClock: wallClock)
    }

    var access: AccessRules { live.values.access }
    var cors: CORSRules { live.values.cors }

    /// Authorizes a request to any route but content, and returns its reader. Content is authorized by
    /// ``admitContent(_:_:host:client:access:reference:)`` when the asset's origin is known.
    ///
    /// Throws as ``AccessRules/admit(_:_:host:at:contentIsPublic:)``, and `.forbidden` for a cross-site request.
    func admit(
        _ request: Request, _ need: AccessRules.Need
    ) throws(CacheError) -> Reader? {
        guard need != .content else { return nil }
        let credentials = request.call.credentials
        // The route redeems the ticket. Only authorized clients can get one.
        if need == .ticketOrRead, QueryFields.contains("ticket", in: request.queryText) { return nil }
        let values = live.values
        let reader = try values.access.admit(need, credentials, host: request.call.host, at: wallClock.now())
        try values.access.admitOrigin(
            request.headers[.origin], isChanging: request.method != .get && request.method != .head,
            isAmbient: credentials.authorization == nil && reader != nil, isAllowed: values.cors.names)
        return reader
    }

    /// Authorizes a content request on either path.
    ///
    /// A signature in the target decides alone. A cookie counts if the content is not public and `Authorization` has no
    /// token of this service; one valid cookie of several is enough.
    ///
    /// Throws as ``AccessRules/admit(_:_:host:at:contentIsPublic:)``, `.tokenExpired`, `.tokenInvalid` and `.tokenScope`
    /// for signatures, and `.tokenScope` for an asset outside the limits of the reader. The limits for `.known` are
    /// checked by ``ReaderLimits``, because they need a look-up.
    ///
    /// - Parameters:
    ///   - target: The request target without its signature.
    ///   - reference: Nil if the target names no asset.
    func admitContent(
        _ credentials: RequestCredentials, _ target: String, host: String?, client: RequestClient? = nil,
        access content: ContentAccess, reference: AssetReference?
    ) throws(CacheError) -> Admission {
        let (rules, now, isPublic) = (access, wallClock.now(), content.access == .public)
        let target = content.coversCMCD ? target : CMCDParameter.removed(fromTarget: target)
        let signed = self.content(target, host, client)
        if let signature = credentials.signature {
            var admission = try rules.admit(signature, signed, at: now)
            // A cookie that the response sets belongs to one reader.
            if admission.renewal != nil { admission.sharing = .readerOnly }
            return admission
        }
        if !isPublic, let admission = try admitCookies(credentials, signed, rules, reference, at: now) {
            return admission
        }
        let reader = try rules.admit(.content, credentials, host: host, at: now, contentIsPublic: isPublic)
        var admission = Admission(reader)
        guard !isPublic else { return admission }
        if let reader, !reader.isSharedCache { admission.sharing = .readerOnly }
        if let reference {
            if case .known = reference { return admission }
            try ReaderLimits.check(reference, for: reader)
        }
        return admission
    }

    /// The admission of the first valid cookie; nil if no cookie can authorize the request. Throws the refusal of the
    /// last one.
    private func admitCookies(
        _ credentials: RequestCredentials, _ signed: SignedContent, _ rules: AccessRules,
        _ reference: AssetReference?, at now: Timestamp
    ) throws(CacheError) -> Admission? {
        guard !credentials.cookies.isEmpty, rules.signatures != nil, !rules.isOpen, case .mounted? = reference,
            !rules.isOwn(credentials, at: now)
        else { return nil }
        var refusal: CacheError?
        for cookie in credentials.cookies {
            do throws(CacheError) {
                var admission = try rules.admit(cookie, signed, at: now)
                admission.sharing = .readerOnly
                return admission
            } catch {
                refusal = error
            }
        }
        if let refusal { throw refusal }
        return nil
    }

    /// The parts of a request that a signature covers. Scheme and host are those that the client has used.
    private func content(_ target: String, _ host: String?, _ client: RequestClient?) -> SignedContent {
        let parts = target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        return SignedContent(
            path: parts.first.map(String.init) ?? "", query: parts.count > 1 ? String(parts[1]) : nil,
            base: (client?.isEncrypted ?? isEncrypted ? "https://" : "http://") + (client?.host ?? host ?? "localhost"))
    }
}
