import Testing

@testable import CacheCore
import TestChance

@Suite struct GhostQueueTests {
    @Test("Matches a plain list")
    func agreesWithAPlainList() {
        var (random, seed) = SeededRandom.announced()
        var ghosts = GhostQueue(capacityBytes: 500)
        var model: [Victim] = []  // oldest first
        for _ in 0..<6000 {
            let segment = SegmentID(asset: AssetID(high: 3, low: 4), index: Int32.random(in: 0..<60, using: &random))
            let bytes = Int64.random(in: -3..<60, using: &random)
            let slot = model.firstIndex { $0.segment == segment }
            switch Int.random(in: 0..<8, using: &random) {
            case 0:
                let wasIn = ghosts.remove(segment)
                #expect(wasIn == (slot != nil), "seed \(seed)")
                if let slot { model.remove(at: slot) }
            case 1:
                ghosts.renew(segment)
                if let slot {
                    model.remove(at: slot)
                    model.append(Victim(segment: segment, bytes: 0))
                }
            case 2 where Int.random(in: 0..<10, using: &random) == 0:
                ghosts.capacityBytes = Int64.random(in: 50..<1000, using: &random)
                while model.reduce(0, { $0 + $1.bytes }) > ghosts.capacityBytes { model.removeFirst() }
            default:
                ghosts.insert(segment, bytes: bytes)
                guard bytes > 0, bytes <= ghosts.capacityBytes, slot == nil else { break }
                while model.reduce(0, { $0 + $1.bytes }) > ghosts.capacityBytes - bytes { model.removeFirst() }
                model.append(Victim(segment: segment, bytes: bytes))
            }
            #expect(ghosts.contains(segment) == model.contains { $0.segment == segment }, "seed \(seed)")
            #expect(ghosts.count == model.count, "seed \(seed)")
            #expect(ghosts.usedBytes == model.reduce(0) { $0 + $1.bytes }, "seed \(seed)")
        }
    }
}
