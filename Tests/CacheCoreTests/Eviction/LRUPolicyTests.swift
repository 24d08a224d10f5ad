import CacheCore
import Testing
import TestChance

@Suite struct LRUPolicyTests {
    @Test("Admitting again changes the size but not the order")
    func admittingAgainChangesTheSizeAndNotTheOrder() {
        var policy = LRUPolicy(capacityBytes: 100)
        policy.admit(SegmentID(named: "A"), bytes: 10)
        policy.admit(SegmentID(named: "B"), bytes: 10)

        policy.admit(SegmentID(named: "A"), bytes: 30)

        #expect(policy.usedBytes == 40)
        #expect(policy.victims(toFree: 1) { _ in false } == [Victim(segment: SegmentID(named: "A"), bytes: 30)])
    }

    @Test("Matches a plain list")
    func agreesWithAPlainList() {
        var (random, seed) = SeededRandom.announced()
        var policy = LRUPolicy(capacityBytes: 100)
        var model: [Victim] = []  // oldest first
        for _ in 0..<5000 {
            let segment = SegmentID(asset: AssetID(high: 1, low: 2), index: Int32.random(in: 0..<24, using: &random))
            let bytes = Int64.random(in: 0..<100, using: &random)
            let slot = model.firstIndex { $0.segment == segment }
            switch Int.random(in: 0..<4, using: &random) {
            case 0:
                policy.admit(segment, bytes: bytes)
                if let slot {
                    model[slot].bytes = bytes
                } else {
                    model.append(Victim(segment: segment, bytes: bytes))
                }
            case 1:
                policy.touch(segment)
                if let slot { model.append(model.remove(at: slot)) }
            case 2:
                policy.resize(segment, bytes: bytes)
                if let slot { model[slot].bytes = bytes }
            default:
                policy.remove(segment)
                if let slot { model.remove(at: slot) }
            }
            #expect(policy.victims(toFree: .max) { _ in false } == model, "seed \(seed)")
        }
    }
}
