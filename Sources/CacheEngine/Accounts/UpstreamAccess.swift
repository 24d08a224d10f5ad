import CacheCore
import UpstreamAccounts

/// The way to the content for one request and its repetitions: by the URL of the target or by a link, with the
/// authorization of the origin's account.
final class UpstreamAccess: RequestAuthorizer {
    /// Nil: the URL of the target.
    let link: ContentLink?
    private let account: UpstreamAccount?
    /// Whether the origin's header fields are sent.
    private let sendsHeaders: Bool
    private let wallClock: any WallClock
    /// Guards the revision of the credentials of the latest request; nil: none was authorized.
    private let usedRevision = OrderedMutex<Int?>(.leaf, nil)

    /// - Parameter account: Nil: only the header fields authorize requests.
    init(
        link: ContentLink? = nil, account: UpstreamAccount?, settings: OriginSettings, wallClock: any WallClock
    ) {
        self.link = link
        // A redirect's target is another host, unless the link is from an API call with `sendCredentials`.
        let isOwnPlace = link.map { $0.resolution?.sendsCredentials ?? false } ?? true
        self.account = isOwnPlace ? account : nil
        sendsHeaders = isOwnPlace
        self.wallClock = wallClock
    }

    /// Whether an account authorizes the requests.
    var isAuthorized: Bool { account != nil }

    /// Adds the authorization to a request.
    func apply(to request: inout UpstreamRequest) {
        if !sendsHeaders { request.originHeaders = [:] }
        request.authorizer = account == nil ? nil : self
    }

    var region: String? { account.flatMap { $0.settings.kind == .s3 ? $0.settings.region : nil } }

    func authorize(_ request: OutgoingRequest) throws(CacheError) -> AuthorizedFields {
        guard let account else { return AuthorizedFields(url: request.url.text) }
        let authorized = try account.authorize(
            method: request.method, url: request.url, headers: request.headers, region: request.region,
            at: wallClock.now())
        usedRevision.withLock { $0 = authorized.revision }
        return AuthorizedFields(url: authorized.url.text, headers: authorized.headers)
    }

    /// Whether a request can succeed after a response that refused it, because the account has or gets other
    /// credentials.
    func accountRefused(status: Int, headers: HeaderList, _ document: ErrorDocument) -> Bool {
        guard let account, let revision = usedRevision.withLock({ $0 }),
            // The service has accepted the keys, or it is busy.
            document.reason == nil || document.reason == .expiredToken
        else { return false }
        return account.refused(status: status, headers: headers, document, revision: revision, at: wallClock.now())
    }
}
