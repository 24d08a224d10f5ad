package import CacheCore

/// The digests of the tokens of this service, present and removed, so that a removed token is not taken for one of an
/// upstream.
///
/// A removed token is known for 90 days. It has no description.
package struct IssuedTokens: Hashable, Sendable {
    /// The maximum number of tokens; those that were removed first are dropped first. Present tokens are never dropped.
    package static let capacity = 20_000
    /// How long a removed token is known.
    package static let retention = Duration.seconds(90 * 86_400)

    /// The time of removal; nil for a present token.
    private var removals: [TokenDigest: Timestamp?] = [:]

    package init() {}

    /// Whether the token is known.
    package func contains(_ token: TokenDigest, at now: Timestamp) -> Bool {
        guard let removal = removals[token] else { return false }
        return removal.map { now < $0 + Self.retention } ?? true
    }

    /// Adds present tokens.
    package mutating func add(_ present: some Sequence<TokenDigest>) {
        for token in present { removals.updateValue(nil, forKey: token) }
    }

    /// Makes all other tokens than the present ones removed ones, and drops those that were removed long ago.
    package mutating func update(present: Set<TokenDigest>, at now: Timestamp) {
        var updated: [TokenDigest: Timestamp?] = [:]
        for token in present { updated.updateValue(nil, forKey: token) }
        let removed = removals.filter { !present.contains($0.key) }.map { ($0.key, $0.value ?? now) }
            .filter { now < $0.1 + Self.retention }.sorted { $0.1 > $1.1 }
        for (token, removal) in removed.prefix(max(0, Self.capacity - present.count)) { updated[token] = removal }
        removals = updated
    }

    // MARK: Stored form

    /// A line for each token: its digest and, if it was removed, the seconds since 1970.
    package var text: String {
        removals.map { token, removal in token.hexDigits + (removal.map { " \($0.seconds)" } ?? "") }
            .sorted().joined(separator: "\n")
    }

    /// Reads the stored form; other lines are skipped.
    package init(text: String) {
        for line in text.split(separator: "\n") {
            let parts = line.split(separator: " ")
            guard let first = parts.first, let token = TokenDigest(hexDigits: String(first)) else { continue }
            let removal = parts.dropFirst().first.flatMap { Int64($0) }.map { Timestamp(seconds: $0) }
            removals.updateValue(removal, forKey: token)
        }
    }
}
