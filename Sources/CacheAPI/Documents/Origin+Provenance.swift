import CacheCore

extension Origin {
    /// The `Origin` schema with the provenance and the observations.
    ///
    /// - Parameters:
    ///   - isConfigured: Whether the configuration names the origin.
    ///   - observations: The temporary beliefs about the origin.
    ///   - uptimeZero: The time at which the uptime of their instants is zero.
    func json(isConfigured: Bool, observations: [Observation] = [], uptimeZero: Timestamp = Timestamp(seconds: 0))
        -> JSON
    {
        var json = json
        json.insert(isConfigured ? "configuration" : "api", at: ["from"])
        json.insert(.array(observations.map { $0.json(uptimeZero: uptimeZero) }), at: ["observations"])
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
            "kind": .string(kind.rawValue), "scope": scope, "assetId": asset, "address": address,
            "since": .instant(uptimeZero + since), "expiresAt": .instant(uptimeZero + expiresAt),
            "evidence": .string(evidence),
        ]
    }
}
