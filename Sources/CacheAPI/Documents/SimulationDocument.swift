import CacheCore
package import CacheEngine
import CacheSimulation

/// The `SimulationResults` schema.
package struct SimulationDocument: Codable {
    /// The `SimulationResult` schema. Amounts are per day of the window; it counts as at least one second.
    struct Result: Codable {
        var algorithm: String
        var capacityBytes: Int64
        var requestHitRatio, byteHitRatio: Double
        var writtenBytesPerDay, upstreamBytesPerDay: Int64
        var upstreamCostPerDay: Double?
    }

    var windowSeconds: Double
    var reads: Int
    var sampleShare: Double
    var items: [Result]
}

extension SimulationDocument {
    package init(_ results: SimulationResults) {
        let days = max(1, results.window.inSeconds) / 86400
        self.init(
            windowSeconds: results.window.documentSeconds, reads: results.reads, sampleShare: results.sampleShare,
            items: results.simulations.map { simulation in
                let upstream = Double(simulation.upstreamBytes) / days
                return Result(
                    algorithm: simulation.algorithm.rawValue, capacityBytes: simulation.capacityBytes,
                    requestHitRatio: simulation.requestHitRatio, byteHitRatio: simulation.byteHitRatio,
                    writtenBytesPerDay: Int64(saturating: Double(simulation.writtenBytes) / days),
                    upstreamBytesPerDay: Int64(saturating: upstream),
                    upstreamCostPerDay: results.pricePerGigabyte.map { $0 * upstream / 1e9 })
            })
    }
}

/// The `PolicyCurve` schema.
package struct PolicyCurveDocument: Codable {
    struct Point: Codable {
        var capacityBytes: Int64
        var requestMissRatio, byteMissRatio: Double
    }

    var algorithm: String
    var capacityBytes: Int64
    var windowSeconds: Double
    var reads: Int
    var points: [Point]
}

extension PolicyCurveDocument {
    package init(_ curve: PolicyCurve) {
        self.init(
            algorithm: curve.algorithm.rawValue, capacityBytes: curve.capacityBytes,
            windowSeconds: curve.window.documentSeconds, reads: curve.reads,
            points: curve.points.map { point in
                Point(
                    capacityBytes: point.capacityBytes, requestMissRatio: point.requestMissRatio,
                    byteMissRatio: point.byteMissRatio)
            })
    }
}
