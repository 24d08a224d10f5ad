import CacheCore

/// Parameters of the next try of a fill after a failure.
struct FillRetry: Hashable, Sendable {
    /// The delay before the request; nil: exponential backoff.
    var delay: Duration?
    /// The sum of the consecutive waits that the upstream asked for, `delay` included.
    var waited = Duration.zero
    /// Whether a failure preceded this try.
    var isAgain = false
    /// Whether this try does not count against the configured retries.
    var isFree = false
    /// The refusal of the previous request, because of which this one omits `Range`; nil: it may have one.
    var rangeRefusal: CacheError.Code?
    /// Whether the origin's credentials were read again for this try.
    var hasNewCredentials = false
    /// Whether no other node of the fleet is asked, because one has failed to deliver what it had offered.
    var skipsPeers = false
    /// The index of the address that is asked first: 0 is the origin's URL, mirrors follow.
    var address = 0
    /// Addresses that have failed for the same bytes.
    var failed: Set<Int> = []
    /// Mirrors with different content or none; they are not asked again.
    var skipped: Set<Int> = []

    /// Whether the request omits `Range`, because the upstream refused the previous one.
    var isPlain: Bool { rangeRefusal != nil }

    /// The try after a 401, once the credentials have been read again.
    static let withNewCredentials = FillRetry(delay: .zero, isAgain: true, isFree: true, hasNewCredentials: true)
}

/// The failure of one transfer of a fill.
struct FillFailure: Sendable {
    let code: CacheError.Code
    /// The parameters that the fill was started with.
    let previous: FillRetry
    /// The index of the origin's address that was asked.
    let address: Int
    /// The number of the origin's addresses.
    let addresses: Int
    /// Whether the response came from a mirror and was not trusted.
    var isSkip = false
    /// Whether the request went to another node of the fleet.
    var isOfPeer = false
    /// Whether the request had a `Range`; without one the upstream may answer.
    var hadRange = false
    /// Whether the request was not sent, because the circuit of its address was open by then.
    var wasLeftAlone = false
    /// Whether the transfer brought enough bytes to reset the count of failures.
    var hasProgressed = false

    /// The parameters of the next try; nil: no further try.
    ///
    /// - An interrupted body is resumed immediately.
    /// - Otherwise the next address is asked, immediately if it has not failed for these bytes.
    /// - Without another address, the try waits as long as the upstream asks for, within `limit`, or for the backoff.
    func retry(within limit: Duration) -> FillRetry? {
        if isOfPeer, code != .storageFull, code != .cancelled, code != .shuttingDown {
            var next = previous
            (next.delay, next.isFree, next.skipsPeers) = (.zero, true, true)
            return next
        }
        if hadRange, !isSkip, code.refusesRange {
            return FillRetry(
                delay: .zero, isAgain: true, isFree: true, rangeRefusal: code,
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
            // The address is not the cause. The try is repeated as long as its reader waits, at growing intervals of up
            // to 4 s.
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

    /// Whether the next request uses an address that has not failed for these bytes: no request is repeated.
    func movesOn(_ next: FillRetry) -> Bool { next.address != address && !next.failed.contains(next.address) }
}

extension CacheError.Code {
    /// The parameters of the try after this error; nil: no further try.
    ///
    /// The wait that a busy server asks for is observed (RFC 9110 §10.2.3). The sum of such waits, `previous` included,
    /// must be below `limit`, the longest wait of a reader.
    func retry(after previous: FillRetry, within limit: Duration) -> FillRetry? {
        guard isWorthRetrying else { return nil }
        guard case .upstreamRefused(_, let fields) = self, let wait = fields.retryAfter, isOfBusyServer else {
            return FillRetry()
        }
        let waited = previous.waited + wait
        return waited < limit ? FillRetry(delay: wait, waited: waited) : nil
    }
}

extension CacheError {
    /// The evidence about the address that a transfer with this error gives, if it brought no byte.
    var evidence: OriginHealth.Evidence {
        guard !isLocal else { return .nothing }
        if case .upstreamRefused(let status, _) = code { return OriginHealth.Evidence(status: status) }
        if code.isOfBrokenAddress { return .broken(self) }
        return code.isOfWorkingAddress ? .well : .nothing
    }
}
