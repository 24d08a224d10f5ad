package import CacheCore

/// The account of an origin: obtains credentials, keeps them and authorizes requests with them.
///
/// The caller runs one refresh at a time. All other methods can be called at any time on any thread.
package final class UpstreamAccount: Sendable {
    /// The name of the origin.
    package let origin: String
    package let settings: OriginAuth
    private let kind: OriginAuth.Kind
    private let dependencies: AccountDependencies
    private let metadataTokens = MetadataTokenCache()
    private let unsaved = UnsavedRefreshToken()
    private let ledger: OrderedMutex<AccountLedger>

    /// Nil if the settings name no kind of account. Other settings are checked by ``OriginAuth/fault``.
    package init?(origin: String, settings: OriginAuth, dependencies: AccountDependencies) {
        guard let kind = settings.kind else { return nil }
        self.origin = origin
        self.settings = settings
        self.kind = kind
        self.dependencies = dependencies
        let isFromFile = kind == .sas || (kind == .s3 && settings.credentials == .file)
        let isFixed = kind == .s3 && [.static, .environment].contains(settings.credentials)
        ledger = OrderedMutex(
            .account,
            AccountLedger(
                isReread: isFromFile, isRenewable: !isFixed, isSigned: kind == .s3,
                isExtensible: kind == .s3 && settings.credentials == .instance))
    }

    /// Whether credentials are usable and whether a refresh is due. After a failed refresh, usable credentials count as
    /// valid for 5 to 60 seconds.
    package func state(at now: Timestamp) -> AccountState { ledger.withLock { $0.state(at: now) } }

    package var status: AccountStatus {
        let now = dependencies.wallClock.now()
        return ledger.withLock { ledger in
            AccountStatus(
                kind: kind, expiresAt: ledger.held?.expiresAt, isStale: ledger.isStale(at: now),
                refreshedAt: ledger.held?.refreshedAt,
                refreshes: ledger.refreshes, failures: ledger.failures, error: ledger.error)
        }
    }

    /// The usable credentials with the clock skew, otherwise the error of the last refresh.
    func held(at now: Timestamp) -> (held: AccountLedger.Held?, skew: Duration, error: String?) {
        ledger.withLock { ($0.usable(at: now), $0.skew, $0.error) }
    }

    /// Records that the upstream refused a request, and returns whether a repeated request can succeed, after
    /// ``refresh()`` if ``state(at:)`` is `.missing`. Repeat a request once only.
    ///
    /// A refusal with 400 or 403 whose `Date` differs from the time of the signature by more than a minute corrects the
    /// time of later signatures. Other refusals lead to new credentials, but at most every 10 seconds after 401, every
    /// second after 400, and every minute after 403, which can also mean that one file is not permitted. A file of
    /// credentials is read again after each refusal. A response with the code `ExpiredToken` ends the credentials.
    ///
    /// - Parameters:
    ///   - headers: The fields of the response.
    ///   - document: The body of the response.
    ///   - revision: The value in the ``AuthorizedRequest``.
    package func refused(
        status: Int, headers: HeaderList, _ document: ErrorDocument = ErrorDocument([]), revision: Int,
        at now: Timestamp
    ) -> Bool {
        ledger.withLock {
            $0.refused(
                status: status, headers: headers, isExpiry: document.reason == .expiredToken, revision: revision,
                at: now)
        }
    }
}

// MARK: Refreshes

extension UpstreamAccount {
    /// Credentials from a source.
    private struct Obtained: Sendable {
        var material: AccountMaterial
        var expiresAt: Timestamp?
        var warning: String?
    }

    /// Obtains new credentials, or reads their file again. After a failure the earlier credentials stay in use until
    /// they expire.
    ///
    /// Throws `.upstreamUnreachable` or `.upstreamTimedOut` if a service does not answer, `.upstreamRefused` if a server refused, `.upstreamForbidden` for an endpoint that is not permitted,
    /// `.upstreamProtocol` for an unusable response, file or environment, and the errors of the dependencies.
    package func refresh() async throws(CacheError) {
        let skew = ledger.withLock(\.skew)
        let exchange = AccountExchange(dependencies, skew: skew)
        do throws(CacheError) {
            try accept(try await obtain(exchange), skew: skew)
        } catch {
            guard isTimeDependent, let learned = exchange.learnedSkew else { throw failed(error, exchange) }
            let second = AccountExchange(dependencies, skew: learned)
            do throws(CacheError) {
                try accept(try await obtain(second), skew: learned)
            } catch {
                throw failed(error, second)
            }
        }
    }

    /// Whether requests for credentials contain the time.
    private var isTimeDependent: Bool {
        switch kind {
        case .s3: settings.credentials == .assumeRole
        case .oauth2: settings.grant == .jwtBearer
        case .sas: false
        }
    }

    private func obtain(_ exchange: AccountExchange) async throws(CacheError) -> Obtained {
        switch kind {
        case .s3:
            let source = KeySource(settings: settings, exchange: exchange, metadataTokens: metadataTokens)
            let issued = try await source.keys()
            return Obtained(material: .keys(issued.keys), expiresAt: issued.expiresAt)
        case .oauth2:
            let source = TokenSource(account: origin, settings: settings, exchange: exchange, unsaved: unsaved)
            let issued = try await source.token()
            return Obtained(material: .token(issued.token), expiresAt: issued.expiresAt, warning: issued.warning)
        case .sas:
            guard let file = settings.file else {
                throw CacheError(.upstreamProtocol, "Set auth.file, which type sas requires.")
            }
            let signature = try SharedAccessSignature(try await dependencies.readFile(file))
            return Obtained(material: .signature(signature), expiresAt: signature.expiresAt)
        }
    }

    private func accept(_ obtained: Obtained, skew: Duration) throws(CacheError) {
        let now = dependencies.wallClock.now()
        try ledger.withLock { ledger throws(CacheError) in
            try ledger.accept(
                obtained.material, until: obtained.expiresAt, skew: skew, warning: obtained.warning, at: now)
        }
    }

    /// Records the error of a refresh and returns it. A cancelled refresh says nothing about the credentials.
    private func failed(_ error: CacheError, _ exchange: AccountExchange) -> CacheError {
        if case .cancelled = error.code { return error }
        let now = dependencies.wallClock.now()
        let isFailing = exchange.isServiceFailing
        ledger.withLock { $0.fail(error.message, isSourceFailing: isFailing, at: now) }
        switch error.code {
        case .upstreamTimedOut: return error
        case .upstreamRefused where error.code.isWorthRetrying: return error
        default: return isFailing ? CacheError(.upstreamUnreachable(), error.message, cause: error) : error
        }
    }
}
