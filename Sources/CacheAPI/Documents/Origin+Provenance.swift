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
        json.insert(.array(report.addresses.map { .object($0.members(withMessage: isForAdmin)) }), at: ["addresses"])
        return json
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
