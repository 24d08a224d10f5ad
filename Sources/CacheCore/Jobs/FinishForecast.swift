/// Pure prediction of the ends of jobs: simulates the order of the schedule with the measured rates of the upstreams.
///
/// Bytes flow like a fluid. Running items keep their slots. The others are given to the jobs in their order, jobs of equal
/// rank in turn, and the slots at one upstream share its rate. A job leaves the simulation at its end, or at its deadline.
package struct FinishForecast: Sendable {
    /// The running, or the queued items of a job at one upstream.
    package struct Work: Hashable, Sendable {
        package var party: String
        package var items: Int
        /// The missing bytes.
        package var bytes: Double
        /// Whether the items run: they keep their slots.
        package var isRunning: Bool

        package init(party: String, items: Int, bytes: Double, isRunning: Bool = false) {
            self.party = party
            self.items = items
            self.bytes = bytes
            self.isRunning = isRunning
        }
    }

    /// A job with its remaining work. Times are seconds from now.
    package struct Job: Hashable, Sendable {
        package var id: String
        /// Jobs of equal rank take turns; ranks increase in the order of the jobs.
        package var rank: Int
        package var work: [Work]
        /// The rate limit in bytes per second; nil: none.
        package var limit: Double?
        /// The largest number of items in progress with a rate limit.
        package var mostRuns: Int
        package var deadline: Double?
        /// The time until the job may run; nil: it may not run, and has no end.
        package var start: Double?

        package init(
            id: String, rank: Int = 0, work: [Work], limit: Double? = nil, mostRuns: Int = 1,
            deadline: Double? = nil, start: Double? = 0
        ) {
            self.id = id
            self.rank = rank
            self.work = work
            self.limit = limit
            self.mostRuns = mostRuns
            self.deadline = deadline
            self.start = start
        }
    }

    /// A job in the simulation.
    private struct Active {
        var job: Job
        var rates: [Double] = []
        var isUnknown = false

        var bytes: Double { job.work.reduce(0) { $0 + $1.bytes } }
        var items: Int { job.work.reduce(0) { $0 + $1.items } }
    }

    /// The largest number of simulated jobs: the time of a forecast grows with its square.
    private static let mostJobs = 200
    /// Fewer bytes than this count as none.
    private static let tolerance = 0.5

    private let rates: [String: Double]
    private let concurrency: Int
    private var active: [Active]
    private var now = 0.0
    private var ends: [String: Double] = [:]

    /// The seconds from now until the ends of the jobs. Absent: a paused job, one at an upstream without a measured rate, or
    /// one behind the first 200.
    ///
    /// - Parameters:
    ///   - jobs: In the order of the schedule.
    ///   - rates: Bytes per second, by party.
    ///   - concurrency: The largest number of running items.
    package static func ends(of jobs: [Job], rates: [String: Double], concurrency: Int) -> [String: Double] {
        var forecast = FinishForecast(
            rates: rates, concurrency: concurrency,
            active: jobs.lazy.filter { $0.start != nil }.prefix(mostJobs).map { Active(job: $0) })
        // Each step ends a job or a part of one, or starts one.
        for _ in 0..<4 * mostJobs * 4 where forecast.step() == false { break }
        return forecast.ends
    }

    private init(rates: [String: Double], concurrency: Int, active: [Active]) {
        (self.rates, self.concurrency, self.active) = (rates, concurrency, active)
        for index in self.active.indices {
            let work = self.active[index].job.work
            self.active[index].isUnknown = work.contains { $0.bytes > Self.tolerance && (rates[$0.party] ?? 0) <= 0 }
        }
    }

    /// Simulates until the next change. Returns false at the end.
    private mutating func step() -> Bool {
        settle()
        guard !active.isEmpty else { return false }
        share()
        var next = Double.infinity
        for entry in active {
            for (work, rate) in zip(entry.job.work, entry.rates) where rate > 0 { next = min(next, work.bytes / rate) }
            if let start = entry.job.start, start > now { next = min(next, start - now) }
            if let deadline = entry.job.deadline, deadline > now { next = min(next, deadline - now) }
        }
        guard next.isFinite else { return false }
        for index in active.indices {
            for (part, rate) in active[index].rates.enumerated() where rate > 0 {
                active[index].job.work[part].bytes = max(0, active[index].job.work[part].bytes - rate * next)
            }
        }
        now += next
        return true
    }

    /// Removes the jobs that have ended, and those whose deadline has come: they end at the rate that they had.
    private mutating func settle() {
        for index in active.indices {
            active[index].job.work.removeAll { $0.bytes <= Self.tolerance }
        }
        for entry in active where !entry.isUnknown && ends[entry.job.id] == nil {
            if entry.job.work.isEmpty {
                ends[entry.job.id] = max(now, entry.job.start ?? now)
            } else if let deadline = entry.job.deadline, deadline <= now {
                let alone = entry.job.work.map {
                    $0.bytes / max(1, min(rates[$0.party] ?? 0, entry.job.limit ?? .infinity))
                }
                let rate = entry.rates.reduce(0, +)
                ends[entry.job.id] = now + (rate > 0 ? entry.bytes / rate : alone.reduce(0, +))
            }
        }
        active.removeAll { entry in
            entry.job.work.isEmpty || ends[entry.job.id] != nil || entry.job.deadline.map { $0 <= now } ?? false
        }
    }

    /// Gives the slots to the jobs in order, and the rates of the upstreams to the slots.
    private mutating func share() {
        var slots = active.map { [Int](repeating: 0, count: $0.job.work.count) }
        var free = concurrency
        for index in active.indices {
            for (part, work) in active[index].job.work.enumerated() where work.isRunning {
                slots[index][part] = work.items
                free -= work.items
            }
        }
        var first = 0
        while first < active.count, free > 0 {
            let end = active[first...].firstIndex { $0.job.rank != active[first].job.rank } ?? active.count
            var isGiven = true
            while isGiven, free > 0 {
                isGiven = false
                for index in first..<end where free > 0 && active[index].job.start ?? 0 <= now {
                    guard let part = freePart(of: index, slots[index]) else { continue }
                    slots[index][part] += 1
                    (free, isGiven) = (free - 1, true)
                }
            }
            first = end
        }
        var taken: [String: Int] = [:]
        for (index, counts) in slots.enumerated() {
            for (part, count) in counts.enumerated() { taken[active[index].job.work[part].party, default: 0] += count }
        }
        for (index, counts) in slots.enumerated() {
            active[index].rates = counts.enumerated().map { part, count in
                let party = active[index].job.work[part].party
                guard count > 0, let rate = rates[party] else { return 0 }
                return rate * Double(count) / Double(taken[party] ?? count)
            }
            let sum = active[index].rates.reduce(0, +)
            if let limit = active[index].job.limit, sum > limit {
                active[index].rates = active[index].rates.map { $0 * limit / sum }
            }
        }
    }

    /// The part of a job that gets its next slot; nil: none needs one.
    private func freePart(of index: Int, _ slots: [Int]) -> Int? {
        let job = active[index].job
        if job.limit != nil, slots.reduce(0, +) >= job.mostRuns { return nil }
        return job.work.indices.filter { slots[$0] < job.work[$0].items }.min { slots[$0] < slots[$1] }
    }
}
