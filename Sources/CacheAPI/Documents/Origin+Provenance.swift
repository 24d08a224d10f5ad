import CacheCore

extension Origin {
    /// The `Origin` schema with the provenance.
    ///
    /// - Parameter isConfigured: Whether the configuration names the origin.
    func json(isConfigured: Bool) -> JSON {
        var json = json
        json.insert(isConfigured ? "configuration" : "api", at: ["from"])
        return json
    }
}
