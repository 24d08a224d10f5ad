/// The wait of an item that does not run, because its cause also prevents a repetition. It holds no permit.
package struct ItemWait: Hashable, Sendable {
    /// The cause of the wait.
    package enum Cause: String, Hashable, Sendable, CaseIterable, Codable {
        /// The circuit of the upstream address is open.
        case circuit
        /// The upstream limits the rate of requests, or the retry budget of the origin is exhausted.
        case quota
        /// The origin has no usable credentials.
        case credentials
        /// The disk has no space.
        case disk
        /// The live playlist is loaded again at a later time.
        case live
    }

    /// The cause, and the object that it concerns. Items with the same hold wait for the same event.
    package struct Hold: Hashable, Sendable {
        package var cause: Cause
        /// The origin, or the server of an absolute URL; empty for the disk; the item for a live playlist.
        package var party: String

        package init(_ cause: Cause, of party: String) {
            self.cause = cause
            self.party = cause == .disk ? "" : party
        }
    }

    package var hold: Hold
    /// When the item began to wait, over all its repetitions without progress.
    package var since: Timestamp
    /// The time of the next repetition.
    package var retryAt: Timestamp

    package init(for hold: Hold, since: Timestamp, retryAt: Timestamp) {
        self.hold = hold
        self.since = since
        self.retryAt = retryAt
    }

    /// The longest wait of an item with a job that has neither a timeout nor a deadline.
    package static let limit = Duration.seconds(24 * 3600)
}

extension ItemWait {
    /// The state of the upstream and of the disk when the run of an item has failed.
    package struct Conditions: Hashable, Sendable {
        /// The time until the circuit permits a request; nil: it permits one.
        package var circuitPause: Duration?
        /// Whether the origin has an account without usable credentials.
        package var lacksCredentials = false
        /// Whether the retry budget of the origin is exhausted.
        package var isBudgetExhausted = false
        /// Whether the origin's `retries` permit to repeat a request.
        package var permitsRetries = true
        /// Whether the disk has no space, or has refused a write during the run.
        package var isDiskFull = false

        package init() {}
    }

    /// The cause that an item waits for after this error, and the time until its repetition; nil time: growing
    /// intervals. Nil: the error is final.
    ///
    /// - No request was sent, because the circuit is open: the circuit.
    /// - The origin has no usable credentials: the credentials.
    /// - The upstream is busy: the time that it asks for, or growing intervals. `retries: 0` makes this error final.
    /// - Another transient error of the upstream: the circuit if it is open, or the exhausted retry budget.
    /// - The disk is full: the disk.
    package static func after(
        _ code: CacheError.Code, under conditions: Conditions
    ) -> (cause: Cause, time: Duration?)? {
        if case .upstreamUnreachable(let pause?) = code { return (.circuit, pause) }
        switch code {
        case .storageFull, .overloaded: return conditions.isDiskFull ? (.disk, nil) : nil
        case .upstreamUnusable: return conditions.lacksCredentials ? (.credentials, nil) : nil
        default: break
        }
        guard code.isWorthRetrying else { return nil }
        if conditions.lacksCredentials { return (.credentials, nil) }
        if case .upstreamRefused(_, let fields) = code, code.isOfBusyServer, let time = fields.retryAfter {
            return conditions.permitsRetries ? (.quota, time) : nil
        }
        if let pause = conditions.circuitPause { return (.circuit, pause) }
        guard conditions.permitsRetries, code.isOfBusyServer || conditions.isBudgetExhausted else { return nil }
        return (.quota, nil)
    }
}

extension AssetReference {
    /// The party of the holds of its items; nil: unknown before a run.
    var party: String? {
        switch self {
        case .mounted(let origin, _, _): origin
        case .url(let url, _): Origin.party(ofServer: url)
        case .known: nil
        }
    }
}

extension Origin {
    /// Scheme, host and port of an absolute URL.
    package static func server(of url: String) -> Substring {
        let parts = url.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false)
        return parts.count < 3 ? url[...] : url[..<parts[2].endIndex]
    }

    /// The key of the health state of the server that an absolute URL names.
    package static func party(ofServer url: String) -> String { absoluteName + " " + server(of: url) }
}
