import CacheCore
import Logging
import UpstreamAccounts

/// The accounts of the origins, and the links to their content. Credentials and links are fetched by one call for all
/// that wait for them.
final class OriginAccounts: Sendable {
    typealias Continuation = @Sendable (Result<UpstreamAccess, CacheError>) -> Void
    typealias Refreshed = @Sendable (CacheError?) -> Void

    /// What a request is for.
    enum Purpose {
        /// The metadata, which the origin itself states.
        case description
        /// Bytes of a known generation: the target of a redirect may be used again.
        case continuation
    }

    /// The account of one origin.
    private struct Slot {
        let settings: OriginAuth
        let account: UpstreamAccount
        /// The error of the latest refresh and its time; repeated for a moment, so that a failing service is not asked
        /// by each request.
        var failure: (error: CacheError, at: Timestamp)?
    }

    private struct State {
        /// By origin name.
        var slots: [String: Slot] = [:]
        /// Those who wait for the refreshes in progress, by account.
        var refreshing: [ObjectIdentifier: [Refreshed]] = [:]
        var links = ContentLinks()
        /// Those who wait for a call in progress, by the key of the link.
        var resolving: [String: [Continuation]] = [:]
    }

    /// The parts that the accounts need.
    struct Parts: Sendable {
        /// Reads a file below the directory of credentials files.
        var readFile: @Sendable (String) async throws(CacheError) -> [UInt8]
        /// Reads a file that the environment names.
        var readAbsoluteFile: @Sendable (String) async throws(CacheError) -> [UInt8]
        var environment: [String: String]
        var refreshTokens: any RefreshTokenStore
        var upstream: any Upstream
        var clock: any Clock<Duration>
        var wallClock: any WallClock
        var random: any RandomSource
        var logger: Logger
    }

    private let parts: Parts
    /// Guards the accounts and links.
    private let state = OrderedMutex(.originAccounts, State())
    private let work: AsyncStream<@Sendable () async -> Void>
    private let begin: AsyncStream<@Sendable () async -> Void>.Continuation
    /// How long a failure is repeated without a new call.
    private static let failureLifetime = Duration.seconds(1)
    /// The largest response to a request of an account, in bytes.
    private static let responseLimit = 1 << 20

    init(_ parts: Parts) {
        self.parts = parts
        (work, begin) = AsyncStream.makeStream()
    }

    /// Makes the calls until cancellation.
    func run() async {
        await withDiscardingTaskGroup { group in
            for await call in work { group.addTask { await call() } }
        }
    }

    // MARK: Access

    /// Calls `done` when requests for the target can be authorized and its address is known: at once if no call is
    /// needed.
    func open(
        _ target: AssetTarget, for purpose: Purpose, over upstreams: Upstreams, then done: @escaping Continuation
    ) {
        guard let account = account(of: target) else {
            return follow(target, account: nil, for: purpose, over: upstreams, then: done)
        }
        prepare(account, of: target.originName) { [self] error in
            if let error { return done(.failure(error)) }
            follow(target, account: account, for: purpose, over: upstreams, then: done)
        }
    }

    /// The same for an asynchronous caller.
    func access(
        to target: AssetTarget, for purpose: Purpose, over upstreams: Upstreams
    ) async throws(CacheError) -> UpstreamAccess {
        let result = await withCheckedContinuation { continuation in
            open(target, for: purpose, over: upstreams) { continuation.resume(returning: $0) }
        }
        return try result.get()
    }

    /// The authorization of calls of the origin's API, which need no link.
    func apiAccess(to target: AssetTarget) async throws(CacheError) -> UpstreamAccess {
        let account = account(of: target)
        if let account { try await prepared(account, of: target.originName) }
        return access(target, nil, account)
    }

    /// Whether a repeated request can succeed after a response that refused it. A refused link is dropped, and refused
    /// credentials are fetched again by the next ``open(_:for:context:then:)``.
    func isRepeatable(_ access: UpstreamAccess, of target: AssetTarget, after head: UpstreamHead) -> Bool {
        let isRefusal = [400, 401, 403, 404, 410].contains(head.status)
        let document = ErrorDocument(head.excerpt)
        guard isRefusal, document.reason != .transient else { return false }
        if let link = access.link {
            state.withLock { $0.links.drop(link, of: target) }
            return true
        }
        if head.redirects > 0 {
            // A link that the origin has signed may have ended on the way.
            return SignedLinkExpiry.expiry(of: head.finalURL) != nil
        }
        return access.accountRefused(status: head.status, headers: head.headers, document)
    }

    /// Keeps the target of a redirect for as long as the link itself or the redirect's `Cache-Control` states.
    func learn(_ head: UpstreamHead, of target: AssetTarget) {
        guard target.settings.resolution.url == nil, head.redirects > 0, head.redirects == head.earlier.count,
            // Such a target needs the credentials of the origin.
            head.earlier.allSatisfy({ BucketRegion.stated(status: $0.status, headers: $0.headers) == nil })
        else { return }
        let now = parts.wallClock.now()
        let stated = SignedLinkExpiry.expiry(of: head.finalURL).map { $0 - .seconds(5) }
        guard let end = Freshness.end(of: head.earlier, signedUntil: stated, now: now) else { return }
        state.withLock { state in
            _ = state.links.keep(head.finalURL, of: target, until: end, from: nil, at: now)
        }
    }

    /// The figures of an origin's account of that kind; without dates before its first use.
    func figures(of origin: String, _ kind: OriginAuth.Kind) -> StatsSnapshot.CredentialFigures {
        guard let status = state.withLock({ $0.slots[origin]?.account.status }) else {
            return StatsSnapshot.CredentialFigures(kind: kind.rawValue)
        }
        return StatsSnapshot.CredentialFigures(
            kind: kind.rawValue, expiresAt: status.expiresAt, isStale: status.isStale, refreshedAt: status.refreshedAt,
            refreshes: Int64(status.refreshes), failures: Int64(status.failures), error: status.error)
    }

    /// Whether an origin with these settings has an account without usable credentials.
    func lacksCredentials(_ origin: String, _ settings: OriginAuth) -> Bool {
        let now = parts.wallClock.now()
        return state.withLock { state in
            guard let slot = state.slots[origin], slot.settings == settings else { return false }
            return slot.account.state(at: now) == .missing
        }
    }

    // MARK: Accounts

    /// The account of the target's origin; a new one after a change of its settings. Nil if it has none.
    private func account(of target: AssetTarget) -> UpstreamAccount? {
        let (name, settings) = (target.originName, target.settings)
        guard settings.auth.kind != nil else { return nil }
        return state.withLock { state in
            if let slot = state.slots[name], slot.settings == settings.auth { return slot.account }
            let account = UpstreamAccount(
                origin: name, settings: settings.auth,
                dependencies: AccountDependencies(
                    send: Self.calls(of: name, settings, over: parts.upstream),
                    readFile: parts.readFile, readAbsoluteFile: parts.readAbsoluteFile,
                    environment: parts.environment, wallClock: parts.wallClock, random: parts.random,
                    refreshTokens: parts.refreshTokens))
            state.slots[name] = account.map { Slot(settings: settings.auth, account: $0) }
            return account
        }
    }

    /// Sends the requests of an account to token endpoints and metadata services, over the same client as content. The
    /// limits count them apart from the content of the origin.
    private static func calls(
        of origin: String, _ settings: OriginSettings, over upstream: any Upstream
    ) -> AccountDependencies.Send {
        { (request) async throws(CacheError) in
            var request = request
            request.originName = origin + " (account)"
            request.allowPrivateAddresses = settings.allowPrivateAddresses
            request.tls = settings.tls
            return try await upstream.exchange(request, bodyLimit: responseLimit)
        }
    }

    /// Calls `done` when the account has credentials: at once unless they are missing. Credentials that end soon are
    /// refreshed meanwhile.
    private func prepare(_ account: UpstreamAccount, of origin: String, then done: @escaping Refreshed) {
        let now = parts.wallClock.now()
        let readiness = account.state(at: now)
        guard readiness != .valid else { return done(nil) }
        let isMissing = readiness == .missing
        let (failure, isNew) = state.withLock { state -> (CacheError?, Bool) in
            let waiting = state.refreshing[ObjectIdentifier(account)]
            if waiting == nil, let slot = state.slots[origin], slot.account === account, let failure = slot.failure,
                now.since(failure.at) < Self.failureLifetime
            {
                return (failure.error, false)
            }
            state.refreshing[ObjectIdentifier(account)] = (waiting ?? []) + (isMissing ? [done] : [])
            return (nil, waiting == nil)
        }
        if let failure { return done(isMissing ? failure : nil) }
        if !isMissing { done(nil) }
        guard isNew else { return }
        begin.yield { [self] in await refresh(account, of: origin) }
    }

    /// The same for an asynchronous caller.
    private func prepared(_ account: UpstreamAccount, of origin: String) async throws(CacheError) {
        let error = await withCheckedContinuation { continuation in
            prepare(account, of: origin) { continuation.resume(returning: $0) }
        }
        if let error { throw error }
    }

    /// Refreshes the credentials. A service that does not answer, or is busy or failing, is asked again before those who
    /// wait are told.
    private func refresh(_ account: UpstreamAccount, of origin: String) async {
        let wasStale = account.status.isStale
        var failure: CacheError?
        for pause in Self.refreshPauses + [nil] {
            do throws(CacheError) {
                try await account.refresh()
                failure = nil
            } catch {
                failure = Self.failure(error, of: origin)
            }
            // A cancelled wait ends the repetitions.
            guard let pause, failure?.code.isWorthRetrying ?? false,
                account.state(at: parts.wallClock.now()) == .missing,
                (try? await parts.clock.sleep(for: pause)) != nil
            else { break }
        }
        let now = parts.wallClock.now()
        let status = account.status
        if let failure, !status.isStale {
            parts.logger.warning(
                "the credentials of an origin could not be refreshed",
                metadata: ["origin": "\(origin)", "error": "\(failure.message)"])
        }
        if status.isStale {
            if !wasStale { warnOfStaleness(status, of: origin) }
            failure = nil
        }
        let waiting = state.withLock { state -> [Refreshed] in
            if state.slots[origin]?.account === account { state.slots[origin]?.failure = failure.map { ($0, now) } }
            return state.refreshing.removeValue(forKey: ObjectIdentifier(account)) ?? []
        }
        for done in waiting { done(failure) }
    }

    private func warnOfStaleness(_ status: AccountStatus, of origin: String) {
        parts.logger.warning(
            "the credentials of an origin have expired and stay in use, because their source fails",
            metadata: [
                "origin": "\(origin)", "expiresAt": "\(status.expiresAt.map(RFC3339.format) ?? "none")",
                "error": "\(status.error ?? "none")",
            ])
    }

    /// The pauses before the repetitions of a refresh.
    private static let refreshPauses: [Duration?] = [.milliseconds(250), .seconds(1)]

    /// The error of reads whose credentials could not be obtained. The status of a token endpoint says nothing about the
    /// content.
    private static func failure(_ error: CacheError, of origin: String) -> CacheError {
        switch error.code {
        case .upstreamUnreachable, .upstreamTimedOut, .upstreamForbidden, .cancelled, .shuttingDown, .overloaded:
            return error
        case .upstreamRefused where error.code.isWorthRetrying:
            return CacheError(
                .upstreamUnreachable(), "The origin \(origin) has no usable credentials. \(error.message)", cause: error
            )
        default:
            return CacheError(
                .upstreamUnusable(), "The origin \(origin) has no usable credentials. \(error.message)", cause: error)
        }
    }

    /// The error of a response that refused the credentials of an account finally; nil if it did not.
    func refusal(_ access: UpstreamAccess, of target: AssetTarget, after head: UpstreamHead) -> CacheError? {
        let reason = ErrorDocument(head.excerpt).reason
        guard let kind = target.settings.auth.kind, access.isAuthorized, head.redirects == 0, reason != .transient
        else {
            return nil
        }
        switch head.status {
        case 401, 403:
            return CacheError(
                .upstreamRefused(status: head.status, .init(reason: reason)),
                "The upstream refused the \(kind.rawValue) credentials of the origin \(target.originName) with status "
                    + "\(head.status); check them and their permission to read this file.")
        case 400 where kind == .s3:
            return CacheError(
                .upstreamUnusable(),
                "The upstream refused the s3 signature of the origin \(target.originName) with status 400; check "
                    + "auth.region and the credentials.")
        default: return nil
        }
    }

    // MARK: Links

    /// Finds the link of the target, if it needs or has one.
    private func follow(
        _ target: AssetTarget, account: UpstreamAccount?, for purpose: Purpose, over upstreams: Upstreams,
        then done: @escaping Continuation
    ) {
        let needsLink = target.settings.resolution.url != nil
        let now = parts.wallClock.now()
        let key = ContentLinks.key(target)
        let (link, isNew) = state.withLock { state -> (ContentLink?, Bool) in
            let isWanted = needsLink || purpose == .continuation
            if isWanted, let link = state.links.link(of: target, at: now) { return (link, false) }
            guard needsLink else { return (nil, false) }
            defer { state.resolving[key, default: []].append(done) }
            return (nil, state.resolving[key] == nil)
        }
        if link != nil || !needsLink { return done(.success(access(target, link, account))) }
        guard isNew else { return }
        begin.yield { [self] in await resolve(target, account, upstreams) }
    }

    /// Makes the call for a link, for all that wait for it.
    private func resolve(_ target: AssetTarget, _ account: UpstreamAccount?, _ upstreams: Upstreams) async {
        var result: Result<UpstreamAccess, CacheError>
        do throws(CacheError) {
            let found = try await LinkCall(target: target, upstreams: upstreams, wallClock: parts.wallClock).link(
                account: account
            ) {
                () async throws(CacheError) in if let account { try await prepared(account, of: target.originName) }
            }
            let link = state.withLock { state in
                state.links.keep(
                    found.url, of: target, until: found.expiresAt, from: target.settings.resolution,
                    at: parts.wallClock.now())
            }
            result = .success(access(target, link, account))
        } catch {
            result = .failure(error)
        }
        let waiting = state.withLock { $0.resolving.removeValue(forKey: ContentLinks.key(target)) } ?? []
        for done in waiting { done(result) }
    }

    private func access(_ target: AssetTarget, _ link: ContentLink?, _ account: UpstreamAccount?) -> UpstreamAccess {
        UpstreamAccess(link: link, account: account, settings: target.settings, wallClock: parts.wallClock)
    }
}
