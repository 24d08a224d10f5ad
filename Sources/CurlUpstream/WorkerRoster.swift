/// Which worker carries which host's transfers: the fewest that can, so that connections are reused.
struct WorkerRoster {
    private let perWorker: Int
    /// Transfers by worker.
    private(set) var totals: [Int]
    /// For each host the workers that carry it, in the order they took it up, with their transfers.
    private var homes: [String: [(worker: Int, active: Int)]] = [:]
    private static let rememberedHosts = 1024

    init(workers: Int, perWorker: Int) {
        self.perWorker = perWorker
        totals = Array(repeating: 0, count: workers)
    }

    /// The worker for the next transfer of `host`, which counts as active there.
    mutating func assign(_ host: String) -> Int {
        var home = homes[host] ?? []
        if let place = home.firstIndex(where: { $0.active < perWorker }) {
            home[place].active += 1
            return taken(by: home[place].worker, host, home)
        }
        let others = totals.indices.filter { worker in !home.contains { $0.worker == worker } }
        if let worker = others.min(by: { totals[$0] < totals[$1] }) {
            home.append((worker, 1))
            return taken(by: worker, host, home)
        }
        let place = home.indices.min { home[$0].active < home[$1].active } ?? 0
        home[place].active += 1
        return taken(by: home[place].worker, host, home)
    }

    mutating func finished(_ host: String, on worker: Int) {
        totals[worker] -= 1
        guard let place = homes[host]?.firstIndex(where: { $0.worker == worker }) else { return }
        homes[host]?[place].active -= 1
    }

    /// A transfer of `host` that `finished` on `worker`, to wait, goes on there.
    mutating func resumed(_ host: String, on worker: Int) {
        var home = homes[host] ?? []
        if let place = home.firstIndex(where: { $0.worker == worker }) {
            home[place].active += 1
        } else {
            home.append((worker, 1))
        }
        _ = taken(by: worker, host, home)
    }

    private mutating func taken(by worker: Int, _ host: String, _ home: [(worker: Int, active: Int)]) -> Int {
        if homes[host] == nil, homes.count >= Self.rememberedHosts {
            homes = homes.filter { $0.value.contains { $0.active > 0 } }
        }
        homes[host] = home
        totals[worker] += 1
        return worker
    }
}
