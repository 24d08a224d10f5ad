import CacheCore
package import CacheEngine

/// The `Origin` schema: the settings, the provenance, the observations and the addresses.
struct OriginDocument: Encodable {
    /// The document of `OriginSettings.settings`.
    private let settings: JSON
    private let provenance: Provenance

    private struct Provenance: Encodable {
        var from: String
        var observations: [ObservationDocument]
        var addresses: [CircuitDocument]
    }

    /// - Parameter isForAdmin: Whether the reader may see the messages of failures.
    init(_ origin: Origin, _ report: OriginReport, isForAdmin: Bool = false) {
        settings = origin.json
        provenance = Provenance(
            from: report.isConfigured ? "configuration" : "api",
            observations: report.observations.map { ObservationDocument($0, uptimeZero: report.uptimeZero) },
            addresses: report.addresses.map { figures in
                var address = CircuitDocument(figures, withMessage: isForAdmin)
                address.resolved = .value(
                    figures.resolved.map { CircuitDocument.Resolved($0, withMessage: isForAdmin) })
                return address
            })
    }

    func encode(to encoder: any Encoder) throws {
        try settings.encode(to: encoder)
        try provenance.encode(to: encoder)
    }
}

/// The `Observation` schema.
struct ObservationDocument: Codable {
    var kind, scope: String
    var assetId: AssetID?
    var address: String?
    var since, expiresAt: Timestamp
    var evidence: String
}

extension ObservationDocument {
    fileprivate init(_ observation: Observation, uptimeZero: Timestamp) {
        let (scope, asset, address): (String, AssetID?, String?) =
            switch observation.scope {
            case .origin: ("origin", nil, nil)
            case .asset(let id): ("asset", id, nil)
            case .address(let address): ("address", nil, address)
            }
        self.init(
            kind: observation.kind.name.rawValue, scope: scope, assetId: asset, address: address,
            since: uptimeZero + observation.since, expiresAt: uptimeZero + observation.expiresAt,
            evidence: observation.evidence)
    }
}

/// The `Circuit` schema; `OriginCircuit` with the mirrors, `OriginAddress` with the network addresses.
package struct CircuitDocument: Codable {
    /// The `LastFailure` schema. The message is for administrators.
    struct Failure: Codable {
        var cause: String
        var status: Int?
        var secondsAgo: Double?
        var count: Int64
        var message: String?
    }

    /// A network address of the server.
    struct Resolved: Codable {
        var address, state: String
        var connections: Int64
        var connectSeconds: Double?
        var lastFailure: Failure?
    }

    var url, state: String
    var failuresInARow: Int
    var failingSeconds: Double?
    var opensTotal: Int64
    var probeInSeconds: Double?
    var lastFailure: Failure?
    var mirrors: Omittable<[CircuitDocument]> = .absent
    var resolved: Omittable<[Resolved]> = .absent
}

extension CircuitDocument {
    package init(_ figures: CircuitFigures, withMessage: Bool = false) {
        self.init(
            url: figures.address, state: figures.state.rawValue, failuresInARow: figures.failuresInARow,
            failingSeconds: figures.failing?.documentSeconds, opensTotal: figures.opensTotal,
            probeInSeconds: figures.pause?.documentSeconds,
            lastFailure: Failure(figures.failures, since: figures.sinceFailure, withMessage: withMessage))
    }
}

extension CircuitDocument.Failure {
    /// Nil without a failure. `since`: the time since the last one.
    fileprivate init?(_ failures: AddressFailures, since: Duration?, withMessage: Bool) {
        guard let last = failures.last else { return nil }
        self.init(
            cause: last.cause, status: last.status, secondsAgo: since?.documentSeconds,
            count: failures.counts.values.reduce(0, +), message: withMessage ? last.message : nil)
    }
}

extension CircuitDocument.Resolved {
    fileprivate init(_ figures: AddressFigures, withMessage: Bool) {
        self.init(
            address: figures.address, state: figures.isSuspect ? "suspect" : "healthy",
            connections: figures.connections, connectSeconds: figures.latency?.documentSeconds,
            lastFailure: CircuitDocument.Failure(
                figures.failures, since: figures.sinceFailure, withMessage: withMessage))
    }
}
