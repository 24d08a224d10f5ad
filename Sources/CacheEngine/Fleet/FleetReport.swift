package import CacheCore
import CacheStore

/// The state of the fleet as this node knows it.
package struct FleetReport: Sendable {
    package var fleet, node: String
    /// The time since the last contact with etcd; nil: none since the start.
    package var lag: Duration?
    package var lastError: String?
    /// The reason why this node is not ready; nil: none.
    package var fault: String?
    /// The number of the last purge that this node has applied.
    package var purges: Int64
    /// The faults of the fleet's origins on this node, by name.
    package var originFaults: [String: String]
    package var nodes: [FleetNode]
}

/// A purge of the fleet.
package struct FleetPurgeProgress: Sendable {
    package var number: Int64
    /// The names of the nodes that have applied it, and of those that have not.
    package var appliedBy, pending: [String]

    package var isComplete: Bool { pending.isEmpty }
}

extension FleetMember {
    /// The interval at which the progress of a purge is read while a client waits for it.
    private static let waitInterval = Duration.milliseconds(100)
    /// The age up to which the nodes that another client has read are current.
    private static let nodesAge = Duration.milliseconds(50)

    package var report: FleetReport {
        let (now, fault) = (context.uptime(), fault)
        return state.withLock { state in
            FleetReport(
                fleet: settings.fleet, node: settings.node, lag: state.contact.map { now - $0 },
                lastError: state.lastError, fault: fault, purges: state.record?.purges ?? 0,
                originFaults: state.originFaults, nodes: state.nodes)
        }
    }

    /// The progress of a purge. Throws `.notFound` for a number that was not assigned, and `.fleetUnavailable`.
    package func progress(of number: Int64) async throws(CacheError) -> FleetPurgeProgress {
        let nodes = try await presentNodes()
        var last = max(nodes.map(\.purges).max() ?? 0, state.withLock { $0.record?.purges ?? 0 })
        if number > last { last = try await desired.snapshot(after: .max - 1).lastPurge }
        guard number > 0, number <= last else {
            throw CacheError(.notFound, "The fleet has no purge with the number \(number).")
        }
        return FleetPurgeProgress(
            number: number, appliedBy: nodes.filter { $0.purges >= number }.map(\.name),
            pending: nodes.filter { $0.purges < number }.map(\.name))
    }

    /// The nodes with a live lease. Clients that wait at the same time share a request.
    private func presentNodes() async throws(CacheError) -> [FleetNode] {
        try await reading.pass { () async throws(CacheError) in
            let now = context.uptime()
            if let read = state.withLock({ $0.readNodes }), now - read.at < Self.nodesAge { return read.nodes }
            let nodes = try await desired.nodes()
            state.withLock { $0.readNodes = (now, nodes) }
            return nodes
        }
    }

    /// Waits until all nodes have applied a purge, `limit` at most; returns the progress.
    package func progress(
        of number: Int64, within limit: Duration, clock: any Clock<Duration>
    ) async throws(CacheError) -> FleetPurgeProgress {
        let end = context.uptime() + limit
        var progress = try await progress(of: number)
        while !progress.isComplete, context.uptime() < end,
            (try? await clock.sleep(for: Self.waitInterval)) != nil
        {
            progress = try await self.progress(of: number)
        }
        return progress
    }
}
