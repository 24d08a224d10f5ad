import CacheCore
import Testing
import TestChance

/// The queue, compared with a simple model of the same rules that scans all transfers.
struct TransferQueueModelTests {
    /// Reference model of the queue: scans all transfers and selects the best.
    private struct Model {
        struct Member {
            var entry: TransferQueue.Entry
            var deadline: ContinuousClock.Instant
            var ready: ContinuousClock.Instant
            var isNew = true
        }

        let limit: Int
        var waiting: [UInt64: Member] = [:]
        var active: [UInt64: Member] = [:]
        var paused: [UInt64: Member] = [:]
        var kept: [(origin: String, until: ContinuousClock.Instant)] = []

        func share(_ limit: Int) -> Int { limit == 1 ? 1 : limit - max(1, limit / 4) }

        mutating func keepPlace(of ticket: UInt64, at now: ContinuousClock.Instant) {
            guard let member = active[ticket], member.entry.priority != .prefetch else { return }
            let isAwaited = waiting.values.contains {
                $0.entry.priority == .prefetch && $0.ready <= now && !isOld($0, now)
            }
            if isAwaited { kept.append((member.entry.origin, now + TransferQueue.keepingLimit)) }
        }

        func hasPlace(_ member: Member, at now: ContinuousClock.Instant) -> Bool {
            let sameOrigin = active.values.filter { $0.entry.origin == member.entry.origin }
            guard active.count < limit, sameOrigin.count < member.entry.originLimit else { return false }
            guard member.entry.priority == .prefetch else { return true }
            let isOld = isOld(member, now)
            guard isOld || active.count + kept.count < limit,
                isOld
                    || sameOrigin.count + kept.count(where: { $0.origin == member.entry.origin })
                        < member.entry.originLimit
            else { return false }
            return active.values.count { $0.entry.priority == .prefetch } < share(limit)
                && sameOrigin.count { $0.entry.priority == .prefetch } < share(member.entry.originLimit)
        }

        func isOld(_ member: Member, _ now: ContinuousClock.Instant) -> Bool {
            member.entry.priority == .prefetch && member.ready + TransferQueue.agingLimit <= now
        }

        mutating func admit(at now: ContinuousClock.Instant) -> [UInt64] {
            var admitted: [UInt64] = []
            kept.removeAll { $0.until <= now }
            while let best = waiting.values.filter({ $0.ready <= now && hasPlace($0, at: now) }).min(by: {
                rank($0, now) < rank($1, now)
            }) {
                let ticket = best.entry.ticket
                waiting[ticket] = nil
                active[ticket] = best
                active[ticket]?.isNew = false
                let used = kept.firstIndex { $0.origin == best.entry.origin }
                if let used, best.entry.priority != .prefetch { kept.remove(at: used) }
                admitted.append(ticket)
            }
            return admitted
        }

        typealias Rank = (Int, Int, ContinuousClock.Instant, UInt64)

        func rank(_ member: Member, _ now: ContinuousClock.Instant) -> Rank {
            let isOld = isOld(member, now)
            let line = isOld ? 0 : member.entry.priority.rawValue
            let deadline = isOld ? member.ready + TransferQueue.agingLimit : member.deadline
            return (line, member.isNew ? 1 : 0, deadline, member.entry.ticket)
        }
    }

    @Test("The queue admits the same transfers as a linear scan", arguments: 0..<20)
    func theQueueAdmitsWhatAWalkOverEverythingWould(round: Int) {
        var (random, seed) = SeededRandom.announced(round)
        var queue = TransferQueue(limit: 6)
        var model = Model(limit: 6)
        var now = ContinuousClock.now
        for ticket in 1...600 as ClosedRange<UInt64> {
            now += .milliseconds(Int.random(in: 0...(Bool.random(using: &random) ? 40 : 2000), using: &random))
            let entry = entry(ticket, at: now, &random)
            queue.add(entry)
            model.waiting[ticket] = Model.Member(
                entry: entry, deadline: entry.queued + entry.slack, ready: max(now, entry.notBefore ?? now))
            change(&queue, &model, at: now, upTo: ticket, &random)
            let expected = model.admit(at: now)
            #expect(queue.admit(at: now) == expected, "seed \(seed), step \(ticket)")
            #expect(queue.activeCount == model.active.count, "seed \(seed)")
            #expect(queue.queuedCount == model.waiting.count, "seed \(seed)")
            #expect(queue.pausedCount == model.paused.count, "seed \(seed)")
            #expect(queue.queuedByOrigin.values.reduce(0, +) == model.waiting.count, "seed \(seed)")
        }
    }

    @Test("Five thousand queued transfers are all admitted")
    func fiveThousandThatWaitAllGetTheirTurn() {
        let now = ContinuousClock.now
        var queue = TransferQueue(limit: 64)
        for ticket in 1...5000 as ClosedRange<UInt64> {
            queue.add(
                .init(
                    ticket: ticket, origin: "\(ticket % 40)", originLimit: 4, priority: .live, queued: now,
                    slack: .milliseconds(Int64(5000 - ticket))))
        }
        var order: [UInt64] = []
        while case let admitted = queue.admit(at: now), !admitted.isEmpty {
            #expect(queue.activeCount <= 64)
            order += admitted
            for ticket in admitted { queue.finished(ticket, at: now) }
        }
        #expect(order == Array((1...5000).reversed()))
        #expect(queue.activeByOrigin == [:] && queue.queuedByOrigin == [:])
    }

    private func entry(
        _ ticket: UInt64, at now: ContinuousClock.Instant, _ random: inout SeededRandom
    ) -> TransferQueue.Entry {
        let isDelayed = Int.random(in: 0..<5, using: &random) == 0
        let delay = Duration.milliseconds(Int.random(in: 1...9000, using: &random))
        return .init(
            ticket: ticket, origin: ["a", "b", "c"].randomElement(using: &random) ?? "a", originLimit: 3,
            priority: TransferPriority.allCases.randomElement(using: &random) ?? .live, queued: now,
            slack: .seconds(Int.random(in: 0...8, using: &random)), notBefore: isDelayed ? now + delay : nil)
    }

    /// Applies the same random changes to the queue and the model.
    private func change(
        _ queue: inout TransferQueue, _ model: inout Model, at now: ContinuousClock.Instant, upTo last: UInt64,
        _ random: inout SeededRandom
    ) {
        for _ in 0..<2 {
            let ticket = UInt64.random(in: 1...last, using: &random)
            switch Int.random(in: 0..<5, using: &random) {
            case 0:
                queue.promote(ticket, to: .live, at: now)
                for members in [\Model.waiting, \Model.active, \Model.paused] {
                    guard let member = model[keyPath: members][ticket], member.entry.priority > .live else { continue }
                    let deadline = model.isOld(member, now) ? member.ready + TransferQueue.agingLimit : member.deadline
                    model[keyPath: members][ticket]?.entry.priority = .live
                    model[keyPath: members][ticket]?.deadline = min(deadline, now)
                }
            case 1:
                let isTaken = queue.remove(ticket)
                #expect(isTaken == (model.waiting[ticket]?.isNew == true))
                if isTaken { model.waiting[ticket] = nil }
            case 2:
                queue.paused(ticket)
                if let member = model.active[ticket] ?? model.waiting[ticket], !member.isNew {
                    (model.active[ticket], model.waiting[ticket]) = (nil, nil)
                    model.paused[ticket] = member
                }
            case 3:
                let ticket = model.paused.keys.sorted().randomElement(using: &random) ?? ticket
                queue.resumes(ticket, at: now)
                guard var member = model.paused.removeValue(forKey: ticket) else { continue }
                member.deadline = now + member.entry.slack
                member.ready = now
                model.waiting[ticket] = member
            default:
                let ticket = model.active.keys.sorted().randomElement(using: &random) ?? ticket
                queue.finished(ticket, at: now)
                model.keepPlace(of: ticket, at: now)
                (model.active[ticket], model.waiting[ticket], model.paused[ticket]) = (nil, nil, nil)
            }
        }
    }
}
