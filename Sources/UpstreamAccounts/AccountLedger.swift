import CacheCore

/// Credentials that requests are authorized with.
enum AccountMaterial: Hashable, Sendable {
    case keys(AccessKeys)
    /// An access token, a secret.
    case token(String)
    case signature(SharedAccessSignature)
}

/// Pure state of an account: the credentials in use, their age, refusals and counters.
struct AccountLedger: Sendable {
    /// Credentials in use.
    struct Held: Sendable {
        var material: AccountMaterial
        /// In local time; nil: without a stated end.
        var expiresAt: Timestamp?
        /// The time of the last successful refresh.
        var refreshedAt: Timestamp
        /// Changes with the credentials and with the clock skew.
        var revision: Int
        /// Whether the upstream refused them, and no refresh followed.
        var isRefused = false
        /// Whether the upstream stated that they have expired.
        var hasEnded = false
    }

    /// The time before the expiry at which a refresh begins; a quarter of the lifetime if that is shorter.
    static let refreshMargin = Duration.seconds(300)
    /// The time after their end for which extensible credentials stay in use while their source fails.
    static let extensionTime = Duration.seconds(12 * 3600)
    /// The age at which credentials from a file are read again.
    static let rereadInterval = Duration.seconds(60)
    /// The shortest time between two refusals of a status that lead to a refresh. Services with signatures report an
    /// ended session with 400. 403 is mostly a missing permission for one file. A file is always read again.
    private func renewalInterval(after status: Int) -> Duration {
        if isReread { return .zero }
        return switch status {
        case 400: .seconds(1)
        case 401: .seconds(10)
        default: .seconds(60)
        }
    }
    /// The first and the longest time after a failed refresh in which usable credentials are not refreshed again.
    private static let retryDelays = (first: Duration.seconds(5), longest: Duration.seconds(60))

    /// Whether the credentials come from a file of the administrator; it can change at any time.
    let isReread: Bool
    /// Whether a refresh can bring other credentials.
    let isRenewable: Bool
    /// Whether requests are signed with the time.
    let isSigned: Bool
    /// Whether credentials stay in use after their end while their source fails.
    let isExtensible: Bool

    private(set) var held: Held?
    /// The time at the servers minus the local time.
    private(set) var skew = Duration.zero
    private(set) var refreshes = 0
    private(set) var failures = 0
    /// The message of the last refresh, if it failed or needs attention.
    private(set) var error: String?
    /// Whether the last refresh failed because its source does not answer, or has no newer credentials.
    private var isSourceFailing = false
    private var lastRevision = 0
    /// The times of the latest refusals that led to a refresh, by status.
    private var lastRefusals: [Int: Timestamp] = [:]
    private var failuresInSuccession = 0
    private var retryAt: Timestamp?

    init(isReread: Bool, isRenewable: Bool, isSigned: Bool, isExtensible: Bool = false) {
        self.isExtensible = isExtensible
        self.isReread = isReread
        self.isRenewable = isRenewable
        self.isSigned = isSigned
    }

    func state(at now: Timestamp) -> AccountState {
        guard let held, !held.isRefused, !isExpired(held, at: now) else { return .missing }
        if let retryAt, now < retryAt { return .valid }
        return isDue(held, at: now) ? .refreshSoon : .valid
    }

    /// The credentials for a request; nil if there are none or they have expired. Refused ones are returned, because
    /// a refusal need not concern other requests.
    func usable(at now: Timestamp) -> Held? { held.flatMap { isExpired($0, at: now) ? nil : $0 } }

    /// Whether expired credentials are in use, because their source fails.
    func isStale(at now: Timestamp) -> Bool {
        guard let held, let end = held.expiresAt else { return false }
        return end <= now && !isExpired(held, at: now)
    }

    private func isExpired(_ held: Held, at now: Timestamp) -> Bool {
        guard let end = held.expiresAt, end <= now else { return false }
        return !isSourceFailing || held.hasEnded || !canExtend(beyond: end, at: now)
    }

    private func canExtend(beyond end: Timestamp, at now: Timestamp) -> Bool {
        isExtensible && now < end + Self.extensionTime
    }

    private func isDue(_ held: Held, at now: Timestamp) -> Bool {
        let age = now.since(held.refreshedAt)
        // After a step of the clock into the past, the age is negative.
        if isReread, age >= Self.rereadInterval || age < .zero - Self.rereadInterval { return true }
        guard let end = held.expiresAt, !isReread else { return false }
        return end - min(Self.refreshMargin, end.since(held.refreshedAt) / 4) <= now
    }
}

// MARK: Refreshes

extension AccountLedger {
    /// Records obtained credentials. Throws `.upstreamProtocol` if they have expired already; nothing changes then.
    /// Extensible ones are used nevertheless, unless the upstream stated their end: their source has no newer ones.
    mutating func accept(
        _ material: AccountMaterial, until end: Timestamp?, skew: Duration, warning: String?, at now: Timestamp
    ) throws(CacheError) {
        let isOver = end.map { $0 <= now } ?? false
        let isKnownEnded = held.map { $0.hasEnded && $0.material == material } ?? false
        if let end, isOver, isKnownEnded || !canExtend(beyond: end, at: now) {
            throw CacheError(
                .upstreamProtocol,
                "The credentials expired at \(RFC3339.format(end)); replace them or check the clock of this machine.")
        }
        let isSame = held?.material == material && self.skew == skew
        if !isSame { lastRevision += 1 }
        if !isSame || !isReread { refreshes += 1 }
        self.skew = skew
        held = Held(material: material, expiresAt: end, refreshedAt: now, revision: lastRevision)
        error = isOver ? "The source of the credentials returned expired ones." : warning
        failuresInSuccession = 0
        isSourceFailing = isOver
        retryAt = isOver ? now + Self.retryDelays.longest : nil
    }

    /// Records a failed refresh. Credentials that have not expired stay in use, refused ones too.
    ///
    /// `isSourceFailing`: the source did not answer, or reported a failure of its own.
    mutating func fail(_ message: String, isSourceFailing: Bool = false, at now: Timestamp) {
        self.isSourceFailing = isSourceFailing
        failures += 1
        error = message
        held?.isRefused = false
        let delay = Self.retryDelays.first * (1 << min(failuresInSuccession, 6))
        retryAt = now + min(delay, Self.retryDelays.longest)
        failuresInSuccession += 1
    }
}

// MARK: Refusals

extension AccountLedger {
    /// Records that the upstream refused a request. Returns whether a repeated request can succeed, after a refresh if
    /// the state is `.missing`.
    ///
    /// `revision`: of the credentials in the refused request. `isExpiry`: the response states that they have expired.
    mutating func refused(
        status: Int, headers: HeaderList, isExpiry: Bool = false, revision: Int, at now: Timestamp
    ) -> Bool {
        guard let current = held, status == 401 || status == 403 || (status == 400 && isSigned) else { return false }
        // The request was authorized before the last change.
        guard revision == current.revision else { return true }
        if isSigned, status != 401, let learned = ClockSkew.learned(from: headers, at: now, known: skew) {
            skew = learned
            lastRevision += 1
            held?.revision = lastRevision
            return true
        }
        if isExpiry { held?.hasEnded = true }
        if current.isRefused { return true }
        let interval = renewalInterval(after: status)
        guard isRenewable,
            isExpiry && !current.hasEnded || lastRefusals[status].map({ now.since($0) >= interval || now < $0 }) ?? true
        else {
            return false
        }
        lastRefusals[status] = now
        held?.isRefused = true
        return true
    }
}
