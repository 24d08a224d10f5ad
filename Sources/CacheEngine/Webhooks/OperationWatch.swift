import CacheCore

/// Pure state of the disk as events report it: the disk becomes full, and it has space again after a minute without
/// evidence.
struct DiskWatch: Sendable {
    /// The time without evidence after which the disk has space again.
    private static let recovery = Duration.seconds(60)

    private var refusals: UInt64?
    /// The number of successive checks at which the disk was short.
    private var shortChecks = 0
    /// The uptime of the last evidence of a full disk; nil: the disk has space.
    private var fullAt: Duration?

    /// Records a check, once per second. Returns whether the disk has become full.
    ///
    /// - Parameters:
    ///   - isShort: The free space is below the minimum, and nothing can be evicted.
    ///   - refused: The number of writes that the disk has refused since the start.
    mutating func check(isShort: Bool, refused: UInt64, at uptime: Duration) -> Bool {
        // One check can fall between an eviction and its commit.
        shortChecks = isShort ? shortChecks + 1 : 0
        let isFull = shortChecks >= 2 || refused > refusals ?? 0
        refusals = refused
        if let fullAt, uptime - fullAt >= Self.recovery, !isFull { self.fullAt = nil }
        guard isFull else { return false }
        defer { fullAt = uptime }
        return fullAt == nil
    }
}

/// Pure state of the credentials of all origins as events report them: each end once.
struct CredentialsWatch: Sendable {
    /// The credentials of one origin.
    struct Finding: Sendable {
        var origin: String
        var figures: StatsSnapshot.CredentialFigures
        /// Whether they come from a file of the administrator, which the service cannot renew.
        var isFromFile: Bool
    }

    private struct Seen {
        var expiresAt: Timestamp
        var since: Timestamp
        var isReported = false
    }

    /// The time before the end at which credentials are reported; for those of a file, a tenth of the time for which they
    /// are known, up to the longest.
    private static let (margin, longestMargin) = (Duration.seconds(300), Duration.seconds(86_400))

    private var seen: [String: Seen] = [:]

    /// Records a check. Returns the credentials that are to be reported.
    mutating func check(_ findings: [Finding], at now: Timestamp) -> [CredentialsEvent] {
        let names = Set(findings.map(\.origin))
        seen = seen.filter { names.contains($0.key) }
        return findings.compactMap { check($0, at: now) }
    }

    private mutating func check(_ finding: Finding, at now: Timestamp) -> CredentialsEvent? {
        guard let end = finding.figures.expiresAt else { return nil }
        let known = seen[finding.origin]
        var present = Seen(expiresAt: end, since: now)
        if let known, known.expiresAt == end { present = known }
        defer { seen[finding.origin] = present }
        let share = min(end.since(present.since) / 10, Self.longestMargin)
        let margin = finding.isFromFile ? max(Self.margin, share) : Self.margin
        let isUnrenewed = finding.isFromFile || finding.figures.error != nil
        guard !present.isReported, isUnrenewed, end.since(now) <= margin else { return nil }
        present.isReported = true
        return CredentialsEvent(
            origin: finding.origin, kind: finding.figures.kind, expiresAt: end, error: finding.figures.error)
    }
}
