import CacheCore
import CacheEngine

extension Origin {
    /// The `Origin` schema with the provenance, the observations and the addresses.
    ///
    /// - Parameter isForAdmin: Whether the reader may see the messages of failures.
    func json(_ report: OriginReport, isForAdmin: Bool = false) -> JSON {
        var json = json
        json.insert(report.isConfigured ? "configuration" : "api", at: ["from"])
        json.insert(
            .array(report.observations.map { $0.json(uptimeZero: report.uptimeZero) }), at: ["observations"])
        json.insert(.array(report.addresses.map { $0.json(isForAdmin: isForAdmin) }), at: ["addresses"])
        return json
    }
}

extension CircuitFigures {
    /// The `OriginAddress` schema.
    fileprivate func json(isForAdmin: Bool) -> JSON {
        let resolved = resolved.map { address -> JSON in
            [
                "address": .string(address.address), "state": address.isSuspect ? "suspect" : "healthy",
                "connections": .integer(address.connections), "connectSeconds": .seconds(address.latency),
                "lastFailure": address.failures.json(since: address.sinceFailure, withMessage: isForAdmin),
            ]
        }
        return .object(members(withMessage: isForAdmin) + [.init("resolved", .array(resolved))])
    }
}

extension Observation {
    /// The `Observation` schema.
    fileprivate func json(uptimeZero: Timestamp) -> JSON {
        let scope: JSON =
            switch scope {
            case .origin: "origin"
            case .asset: "asset"
            case .address: "address"
            }
        let (asset, address): (JSON, JSON) =
            switch self.scope {
            case .origin: (.null, .null)
            case .asset(let id): (.string(id.description), .null)
            case .address(let address): (.null, .string(address))
            }
        return [
            "kind": .string(kind.name.rawValue), "scope": scope, "assetId": asset, "address": address,
            "since": .instant(uptimeZero + since), "expiresAt": .instant(uptimeZero + expiresAt),
            "evidence": .string(evidence),
        ]
    }
}
