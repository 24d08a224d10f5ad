package import CacheCore

/// The state of a mounted origin besides its settings.
package struct OriginReport: Sendable {
    /// Whether the configuration names the origin.
    package var isConfigured: Bool
    /// The temporary beliefs about the origin and its addresses.
    package var observations: [Observation] = []
    /// The time when the uptime of their instants is zero.
    package var uptimeZero = Timestamp(seconds: 0)
    /// The base URL, then the mirrors.
    package var addresses: [CircuitFigures] = []

    package init(
        isConfigured: Bool, observations: [Observation] = [], uptimeZero: Timestamp = Timestamp(seconds: 0),
        addresses: [CircuitFigures] = []
    ) {
        self.isConfigured = isConfigured
        self.observations = observations
        self.uptimeZero = uptimeZero
        self.addresses = addresses
    }
}
