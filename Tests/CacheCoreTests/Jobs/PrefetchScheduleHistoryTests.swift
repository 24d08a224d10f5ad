import CacheCore
import Testing
import TestChance

/// Random commands: the counts add up, no item runs twice at once, and all jobs end.
@Suite struct PrefetchScheduleHistoryTests {
    typealias Told = PrefetchScheduleTests

    /// Applies random commands to a schedule and tracks its running items.
    private struct History {
        let seed: UInt64
        var random: SeededRandom
        var schedule = PrefetchSchedule(concurrency: 3)
        var running: Set<PrefetchSchedule.Run> = []
        var ids: [String] = []

        init(seed: UInt64) {
            self.seed = seed
            random = SeededRandom(seed: seed)
        }

        mutating func take(_ actions: [PrefetchSchedule.Action]) {
            for run in actions.starts {
                #expect(!running.contains { ($0.job, $0.item) == (run.job, run.item) }, "seed \(seed)")
                running.insert(run)
            }
            #expect(running.count <= 3, "seed \(seed)")
        }

        mutating func step(_ step: Int64) {
            let now = Told.moment(step)
            switch Int.random(in: 0..<10, using: &random) {
            case 0 where ids.count < 60:
                ids.append("j\(ids.count)")
                let priority = JobPriority.allCases.randomElement(using: &random) ?? .normal
                let job = Told.job(ids[ids.count - 1], items: Int.random(in: 1...9, using: &random), priority: priority)
                take(schedule.add(job, at: now) ?? [])
            case 1: if let id = ids.randomElement(using: &random), step % 7 == 0 { take(schedule.cancel(id, at: now)) }
            default: endOne(at: now)
            }
        }

        private mutating func endOne(at now: PrefetchSchedule.Moment) {
            let inOrder = running.sorted { $0.number < $1.number }
            guard let run = inOrder.randomElement(using: &random) else { return }
            running.remove(run)
            let outcomes: [PrefetchSchedule.Outcome] = [
                .succeeded, .succeeded, .failed(Told.error), .changed(Told.error), .interrupted,
            ]
            take(schedule.ended(run, outcomes.randomElement(using: &random) ?? .succeeded, at: now))
        }

        mutating func drain() {
            while let run = running.popFirst() { take(schedule.ended(run, .succeeded, at: Told.moment(3000))) }
        }
    }

    @Test("Random histories keep the schedule consistent", arguments: [1, 2, 3] as [UInt64])
    func randomHistoriesKeepTheBooksRight(seed: UInt64) {
        var history = History(seed: seed)
        history.take(history.schedule.open(at: Told.moment()))
        for step in 0..<2000 as Range<Int64> { history.step(step) }
        history.drain()

        for id in history.ids {
            let progress = history.schedule.progress(of: id, at: Told.moment(3000))
            #expect(progress?.record.state.isFinished == true, "seed \(seed) \(id)")
            #expect(progress.map { $0.tally[.queued] + $0.tally[.running] } == 0, "seed \(seed) \(id)")
        }
    }
}
