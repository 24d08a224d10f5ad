/// A temporary belief about an upstream that its responses suggest.
package struct Observation: Hashable, Sendable {
    /// The content of a belief.
    package enum Kind: Hashable, Sendable {
        /// The upstream refused a request with `Range` and answered the same request without it.
        case rangesRefused
        /// The upstream answered a request with `Range` by the whole body (RFC 9110 §14.2).
        case rangesIgnored
        /// An unusable response stated a length. A shorter body with the same strong validator is not stored.
        case lengthStated(StatedLength)
        /// A redirect led to the endpoint of the bucket's region.
        case regionStated(RegionalEndpoint)
        /// The address answers over HTTP/2, where a transfer cannot be paused.
        case multiplexed
        /// The address reset an HTTP/2 stream with HTTP_1_1_REQUIRED (RFC 9113 §7).
        case http1Required

        package var name: Name {
            switch self {
            case .rangesRefused: .rangesRefused
            case .rangesIgnored: .rangesIgnored
            case .lengthStated: .lengthStated
            case .regionStated: .regionStated
            case .multiplexed: .multiplexed
            case .http1Required: .http1Required
            }
        }
    }

    /// The name of a kind in the API.
    package enum Name: String, Hashable, Sendable, CaseIterable {
        case rangesRefused, rangesIgnored, lengthStated, regionStated, multiplexed, http1Required
    }

    /// The requests that a belief concerns.
    package enum Scope: Hashable, Sendable {
        case origin
        case asset(AssetID)
        /// Scheme, host and port.
        case address(String)
    }

    package var kind: Kind
    package var scope: Scope
    /// The uptime of the first response that suggested it.
    package var since: Duration
    /// The uptime from which it is void, unless a later response suggests it again.
    package var expiresAt: Duration
    /// The latest response that suggested it, in words.
    package var evidence: String

    package init(kind: Kind, scope: Scope, since: Duration, expiresAt: Duration, evidence: String) {
        self.kind = kind
        self.scope = scope
        self.since = since
        self.expiresAt = expiresAt
        self.evidence = evidence
    }

    /// The time after which a belief is void without a further response that suggests it.
    package static let lifetime = Duration.seconds(600)
}

/// The observations about one origin. Each has an end, so that no response changes the handling of an origin for good;
/// a value without a clock.
package struct ObservationTable: Sendable {
    /// The number of assets that must suggest a belief before it holds for the origin.
    static let assetsForOrigin = 3
    /// The time within which they must suggest it.
    static let originPeriod = Duration.seconds(60)
    /// The largest number of assets with observations; beyond it, the earliest observation is dropped.
    static let mostAssets = 256

    private struct Key: Hashable {
        let name: Observation.Name
        let scope: Observation.Scope
    }

    private var entries: [Key: Observation] = [:]

    package init() {}

    /// Records that a response for `asset` suggests `kind`. A refusal of ranges by several assets within a minute holds
    /// for the origin.
    package mutating func note(_ kind: Observation.Kind, of asset: AssetID, evidence: String, at now: Duration) {
        note(kind, .asset(asset), evidence, at: now)
        guard kind == .rangesRefused else { return }
        let recent = entries.values.filter {
            $0.kind == kind && $0.scope != .origin && now - ($0.expiresAt - Observation.lifetime) < Self.originPeriod
        }
        guard recent.count >= Self.assetsForOrigin else { return }
        note(kind, .origin, "\(recent.count) assets within a minute; the last: \(evidence)", at: now)
    }

    /// Records an observation. Drops those that have ended, and the earliest one if there are too many.
    package mutating func note(
        _ kind: Observation.Kind, _ scope: Observation.Scope, _ evidence: String, at now: Duration
    ) {
        entries = entries.filter { now < $0.value.expiresAt }
        let key = Key(name: kind.name, scope: scope)
        entries[key] = Observation(
            kind: kind, scope: scope, since: entries[key]?.since ?? now, expiresAt: now + Observation.lifetime,
            evidence: evidence)
        guard entries.count > Self.mostAssets, let first = entries.min(by: { $0.value.expiresAt < $1.value.expiresAt })
        else { return }
        entries[first.key] = nil
    }

    /// The length that an unusable response for `asset` stated; nil: none.
    package func statedLength(of asset: AssetID, at now: Duration) -> StatedLength? {
        if case .lengthStated(let length)? = held(.lengthStated, .asset(asset), at: now) { length } else { nil }
    }

    /// The endpoint of the bucket's region; nil: none is known.
    package func region(at now: Duration) -> RegionalEndpoint? {
        if case .regionStated(let endpoint)? = held(.regionStated, .origin, at: now) { endpoint } else { nil }
    }

    /// Records a stored response for `asset`; it replaces a stated length.
    package mutating func stored(_ asset: AssetID) { forget(.lengthStated, .asset(asset)) }

    /// Drops an observation.
    package mutating func forget(_ name: Observation.Name, _ scope: Observation.Scope) {
        if !entries.isEmpty { entries[Key(name: name, scope: scope)] = nil }
    }

    /// Records a 206 for `asset`: it and its origin support ranges.
    package mutating func supportsRanges(_ asset: AssetID) {
        guard !entries.isEmpty else { return }
        forget(.rangesRefused, .origin)
        for name in [Observation.Name.rangesRefused, .rangesIgnored] { forget(name, .asset(asset)) }
    }

    /// Whether requests for `asset` should omit `Range`.
    package func refusesRanges(_ asset: AssetID, at now: Duration) -> Bool {
        [.asset(asset), .origin].contains { holds(.rangesRefused, $0, at: now) }
    }

    /// Whether a request for a part of `asset` would bring the whole body.
    package func lacksRanges(_ asset: AssetID, at now: Duration) -> Bool {
        refusesRanges(asset, at: now) || holds(.rangesIgnored, .asset(asset), at: now)
    }

    private func holds(_ name: Observation.Name, _ scope: Observation.Scope, at now: Duration) -> Bool {
        held(name, scope, at: now) != nil
    }

    private func held(
        _ name: Observation.Name, _ scope: Observation.Scope, at now: Duration
    ) -> Observation.Kind? {
        entries[Key(name: name, scope: scope)].flatMap { now < $0.expiresAt ? $0.kind : nil }
    }

    /// The observations that hold, the earliest first.
    package func current(at now: Duration) -> [Observation] {
        entries.values.filter { now < $0.expiresAt }
            .sorted {
                ($0.since, "\($0.scope)", $0.kind.name.rawValue) < ($1.since, "\($1.scope)", $1.kind.name.rawValue)
            }
    }
}
