package import CacheCore

/// The body of `POST /v1/policy/simulations`.
package struct SimulationRequest: Sendable {
    private struct Document: Decodable {
        var algorithms: List<16, EvictionAlgorithm>?
        var capacities: List<64, JSON>?
        var windowSeconds: Limited<SecondsFromOne>?
    }

    /// The members of the schema.
    package static var keys: [String] { JSON.keys(of: Document.self) }
    /// The maximum number of combinations of algorithm and capacity in one request.
    static let mostTrials = 64

    package var algorithms: [EvictionAlgorithm]
    /// In bytes, from 1 MiB to 1 EiB.
    package var capacities: [Int64]
    /// The period of recorded reads that is simulated.
    package var window: Duration

    /// Reads the request. Absent algorithms and capacities are those of `policy`. The default window is a week, which
    /// is about the period that the access trace covers.
    package init(_ json: JSON, under policy: PolicySettings) throws(CacheError) {
        let document = try json.decode(Document.self)
        window = document.windowSeconds?.duration ?? .seconds(7 * 86400)
        algorithms = document.algorithms?.values ?? [policy.algorithm]
        capacities = []
        for (index, value) in (document.capacities?.values ?? []).enumerated() {
            guard case .integer(let bytes) = value, (1 << 20)...(1 << 60) ~= bytes else {
                throw .invalid("capacities[\(index)]", "A number of bytes from 1 MiB to 1 EiB is expected here.")
            }
            capacities.append(bytes)
        }
        if capacities.isEmpty, let capacity = policy.capacityBytes { capacities = [capacity] }
        guard !capacities.isEmpty else {
            throw .invalid("capacities", "The policy has no capacity; at least one is expected here.")
        }
        guard !algorithms.isEmpty else { throw .invalid("algorithms", "At least one name is expected here.") }
        guard algorithms.count * capacities.count <= Self.mostTrials else {
            throw .invalid("capacities", "At most \(Self.mostTrials) pairs with algorithms are allowed.")
        }
    }
}
