/// Assigns transfers to workers: first to a worker with an idle connection to the host, then to as few workers as
/// possible, so that connections are reused.
struct WorkerAssignment {
    /// One worker's transfers and idle connections of one host.
    private struct Share {
        let worker: Int
        var active: Int
        /// Estimated: connections of completed transfers that no transfer has used since. The upstream may have closed
        /// them.
        var idle = 0
    }

    /// Active transfers of one host per worker before another worker is used too.
    private let perWorker: Int
    /// Transfers by worker.
    private(set) var totals: [Int]
    /// The shares of each host, in the order in which its workers were assigned.
    private var shares: [String: [Share]] = [:]
    private static let rememberedHosts = 1024

    init(workers: Int, perWorker: Int) {
        self.perWorker = perWorker
        totals = Array(repeating: 0, count: workers)
    }

    /// The worker for the next transfer of `host`; it counts as active there.
    mutating func assign(_ host: String) -> Int {
        var own = shares[host] ?? []
        let index =
            own.firstIndex { $0.active < perWorker && $0.idle > 0 } ?? own.firstIndex { $0.active < perWorker }
            ?? unassigned(own).map { Self.share(of: $0, in: &own) }
            ?? own.indices.min { own[$0].active < own[$1].active } ?? 0
        own[index].active += 1
        own[index].idle = max(0, own[index].idle - 1)
        return record(own, of: host, on: own[index].worker)
    }

    /// The least loaded worker without a share.
    private func unassigned(_ own: [Share]) -> Int? {
        totals.indices.filter { worker in !own.contains { $0.worker == worker } }.min { totals[$0] < totals[$1] }
    }

    /// A transfer has ended or is paused. `isConnectionIdle`: its connection can serve another one.
    mutating func finished(_ host: String, on worker: Int, isConnectionIdle: Bool = false) {
        totals[worker] -= 1
        guard let index = shares[host]?.firstIndex(where: { $0.worker == worker }) else { return }
        shares[host]?[index].active -= 1
        if isConnectionIdle { shares[host]?[index].idle += 1 }
    }

    /// A paused transfer of `host` continues on its `worker`.
    mutating func resumed(_ host: String, on worker: Int) {
        var own = shares[host] ?? []
        let index = Self.share(of: worker, in: &own)
        own[index].active += 1
        _ = record(own, of: host, on: worker)
    }

    /// The index of the worker's share, added if there is none.
    private static func share(of worker: Int, in own: inout [Share]) -> Int {
        if let index = own.firstIndex(where: { $0.worker == worker }) { return index }
        own.append(Share(worker: worker, active: 0))
        return own.count - 1
    }

    private mutating func record(_ own: [Share], of host: String, on worker: Int) -> Int {
        if shares[host] == nil, shares.count >= Self.rememberedHosts {
            shares = shares.filter { $0.value.contains { $0.active > 0 } }
        }
        shares[host] = own
        totals[worker] += 1
        return worker
    }
}
