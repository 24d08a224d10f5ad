import CacheCore

/// How a fill goes on from the failure before it.
struct FillRetry: Hashable, Sendable {
    /// How long it waits, in place of the backoff; nil: the backoff.
    var delay: Duration?
    /// What the upstream has asked to wait in a row, `delay` included.
    var waited = Duration.zero
    /// Whether there was a failure before it at all.
    var isAgain = false
    /// It is one try more than the settings give.
    var isFree = false
    /// It asks without a `Range`, since the upstream refused the one before it.
    var isPlain = false
    /// The origin's credentials were read again for it.
    var hasNewCredentials = false
    /// Which of the origin's addresses is asked first.
    var address = 0
    /// Addresses that have failed for the same bytes.
    var failed: Set<Int> = []
    /// Mirrors that have something else, or nothing; they are not asked any more.
    var skipped: Set<Int> = []

    /// How the transfer that was refused with a 401 is begun again once the credentials are read.
    static let withNewCredentials = FillRetry(delay: .zero, isAgain: true, isFree: true, hasNewCredentials: true)
}

/// How one of a fill's transfers failed.
struct FillFailure: Sendable {
    let code: CacheError.Code
    /// What the fill began with.
    let previous: FillRetry
    /// Which of the origin's addresses it was.
    let address: Int
    /// How many addresses the origin has.
    let addresses: Int
    /// It was a mirror's answer, and not one that can be believed.
    var isSkip = false
    /// Whether it asked with a `Range`: without one the upstream may answer.
    var hadRange = false
    /// It was not sent, because its address was left alone by then.
    var wasLeftAlone = false
    /// The transfer brought enough to go on from there as if nothing had been.
    var hasProgressed = false

    /// How the fill goes on; nil: not at all.
    ///
    /// From what broke on the way it goes on at once. Otherwise the next address is asked, at once where that has not
    /// failed yet; where there is no other one, after the wait that the upstream asks for within `limit`, or the backoff.
    func retry(within limit: Duration) -> FillRetry? {
        if hadRange, !isSkip, code.refusesRange {
            return FillRetry(
                delay: .zero, isAgain: true, isFree: true, isPlain: true,
                hasNewCredentials: previous.hasNewCredentials, address: address, failed: previous.failed,
                skipped: previous.skipped)
        }
        guard isSkip || code.isWorthRetrying else { return nil }
        var next = FillRetry(
            isAgain: true, address: address, failed: previous.failed, skipped: previous.skipped)
        if isSkip {
            next.skipped.insert(address)
            next.isFree = true
        } else if code == .storageFull {
            // Not the address's fault: it is tried for as long as its reader waits, more seldom each time.
            let longer = hasProgressed ? .zero : min((previous.delay ?? .zero) * 2, .seconds(4))
            (next.isFree, next.delay) = (true, max(longer, .milliseconds(500)))
            return next
        } else if hasProgressed {
            next.delay = .zero
            return next
        } else {
            next.failed.insert(address)
        }
        let others = (1..<max(1, addresses)).map { (address + $0) % addresses }.filter { !next.skipped.contains($0) }
        guard let other = others.first(where: { !next.failed.contains($0) }) ?? others.first else {
            let wait = wasLeftAlone ? nil : code.retry(after: previous, within: limit)
            next.delay = wait?.delay
            next.waited = wait?.waited ?? .zero
            return wait == nil ? nil : next
        }
        next.address = other
        if !next.failed.contains(other) { next.delay = .zero }
        return next
    }

    /// Whether the next request goes to an address that has not failed yet: nothing there is asked twice.
    func movesOn(_ next: FillRetry) -> Bool { next.address != address && !next.failed.contains(next.address) }
}

extension CacheError.Code {
    /// How a transfer that failed so is begun again; nil: not at all.
    ///
    /// The wait a 429 or 503 asks for is kept (RFC 9110 §10.2.3) as long as such waits, `previous` included, fit into
    /// `limit`, what a reader is ready to wait.
    func retry(after previous: FillRetry, within limit: Duration) -> FillRetry? {
        guard isWorthRetrying else { return nil }
        guard case .upstreamRefused(let status, let wait?) = self, [429, 503].contains(status) else {
            return FillRetry()
        }
        let waited = previous.waited + wait
        return waited < limit ? FillRetry(delay: wait, waited: waited) : nil
    }

    /// Whether the same request may well succeed a moment later.
    var isWorthRetrying: Bool {
        switch self {
        // No memory for what the disk cannot take, either: readers will be past some of it.
        case .upstreamUnreachable, .upstreamProtocol, .upstreamTimedOut, .storageFull, .overloaded: true
        case .upstreamRefused(let status, _): [408, 429].contains(status) || Self.isOfFailingServer(status)
        default: false
        }
    }

    /// What a transfer that ended so, without a byte, shows of the address that was asked.
    var showing: OriginHealth.Showing {
        switch self {
        case .upstreamUnreachable, .upstreamProtocol, .upstreamTimedOut: .broken
        case .upstreamRefused(let status, _): OriginHealth.Showing(status: status)
        case .rangeNotSatisfiable, .assetChanged, .upstreamUnusable: .well
        default: .nothing
        }
    }
}
