/// The failures of one upstream address since the start; a value without a clock.
package struct AddressFailures: Hashable, Sendable {
    /// One failure.
    package struct Failure: Hashable, Sendable {
        /// The status of the response; nil: there was none.
        package var status: Int?
        /// The status, or the name of the error code. A label with few values.
        package var cause: String
        /// The error in words, at most 200 characters. It is for administrators: it can name hosts and addresses.
        package var message: String
        /// The uptime.
        package var at: Duration
    }

    /// The longest kept message, in characters.
    static let longestMessage = 200

    /// Nil: none.
    package private(set) var last: Failure?
    /// The number of failures by cause.
    package private(set) var counts: [String: Int64] = [:]

    package init() {}

    package mutating func note(_ error: CacheError, at now: Duration) {
        let status: Int? = if case .upstreamRefused(let status, _) = error.code { status } else { nil }
        let failure = Failure(
            status: status, cause: status.map { String($0) } ?? error.code.name,
            message: String(error.message.prefix(Self.longestMessage)), at: now)
        counts[failure.cause, default: 0] += 1
        last = failure
    }
}
