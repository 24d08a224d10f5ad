import CacheCore
import Testing

@Suite struct LRUPolicyTests {
    private static let now = Timestamp(seconds: 0)

    private static func segment(_ name: String) -> SegmentID {
        let high = name.utf8.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return SegmentID(asset: AssetID(high: high, low: 0), index: 0)
    }

    private static func name(_ segment: SegmentID) -> String {
        let bytes = (0..<8).reversed().map { UInt8(truncatingIfNeeded: segment.asset.high >> (8 * UInt64($0))) }
        return String(decoding: bytes.filter { $0 != 0 }, as: UTF8.self)
    }

    /// Requests as `name:bytes` (1 where not said), and for each what it evicts, in order; nil is a hit.
    private static let vectors: [(capacity: Int64, requests: String, evicted: [String?])] = [
        (3, "A B C A D B E A C F A", ["", "", "", nil, "B", "C", "A", "D", "B", "E", nil]),
        (4, "A B A B S1 S2 S3 S4 S5 A B", ["", "", nil, nil, "", "", "A", "B", "S1", "S2", "S3"]),
        (4, "A B C D A C E F G A C D H A", ["", "", "", "", nil, nil, "B", "D", "A", "C", "E", "F", "G", nil]),
        (
            100, "A:10 B:50 C:30 A D:40 B:50 E:20 A:10 F:60 A E G:100 A:10",
            ["", "", "", nil, "B", "C", "A D", "", "B", nil, nil, "F A E", "G"]
        ),
        (
            100, "A:30 B:30 C:30 A X:60 B:30 Y:20 A:30 Z:50 Y",
            ["", "", "", nil, "B C", "A", "X", "", "B", nil]
        ),
    ]

    @Test(arguments: vectors.indices)
    func evictsWhatTheReferenceEvicts(index: Int) {
        let vector = Self.vectors[index]
        var policy = LRUPolicy()
        var resident: Set<SegmentID> = []
        for (request, expected) in zip(vector.requests.split(separator: " "), vector.evicted) {
            let parts = request.split(separator: ":")
            let segment = Self.segment(String(parts[0]))
            let bytes = parts.count > 1 ? Int64(parts[1]) ?? 0 : 1
            #expect(resident.contains(segment) == (expected == nil), "\(request)")
            guard let expected else {
                policy.touch(segment)
                continue
            }
            let victims = policy.victims(toFree: policy.usedBytes + bytes - vector.capacity) { _ in false }
            for victim in victims {
                policy.remove(victim.segment)
                resident.remove(victim.segment)
            }
            policy.admit(segment, bytes: bytes, at: Self.now)
            resident.insert(segment)
            #expect(victims.map { Self.name($0.segment) }.joined(separator: " ") == expected, "\(request)")
        }
        #expect(policy.count == resident.count)
    }

    @Test func skipsTheSparedAndLeavesThemInPlace() {
        var policy = LRUPolicy()
        for name in ["A", "B", "C"] { policy.admit(Self.segment(name), bytes: 10, at: Self.now) }
        let spared = Self.segment("A")

        let victims = policy.victims(toFree: 15) { $0 == spared }

        #expect(
            victims == [Victim(segment: Self.segment("B"), bytes: 10), Victim(segment: Self.segment("C"), bytes: 10)])
        #expect(policy.count == 3)
        #expect(policy.victims(toFree: 1) { _ in false }.first?.segment == spared)
        #expect(policy.victims(toFree: 1) { _ in true }.isEmpty)
        #expect(policy.victims(toFree: 0) { _ in false }.isEmpty)
        #expect(policy.victims(toFree: -5) { _ in false }.isEmpty)
    }

    @Test func passesOverSegmentsItDoesNotKnow() {
        var policy = LRUPolicy()

        policy.touch(Self.segment("A"))
        policy.resize(Self.segment("A"), bytes: 5)
        policy.remove(Self.segment("A"))

        #expect(policy.count == 0)
        #expect(policy.usedBytes == 0)
    }

    @Test func admittingAgainChangesTheSizeAndNotTheOrder() {
        var policy = LRUPolicy()
        policy.admit(Self.segment("A"), bytes: 10, at: Self.now)
        policy.admit(Self.segment("B"), bytes: 10, at: Self.now)

        policy.admit(Self.segment("A"), bytes: 30, at: Self.now)

        #expect(policy.usedBytes == 40)
        #expect(policy.victims(toFree: 1) { _ in false } == [Victim(segment: Self.segment("A"), bytes: 30)])
    }

    @Test func agreesWithAPlainList() {
        var (random, seed) = SeededRandom.announced()
        var policy = LRUPolicy()
        var model: [Victim] = []  // oldest first
        for _ in 0..<5000 {
            let segment = SegmentID(asset: AssetID(high: 1, low: 2), index: Int32.random(in: 0..<24, using: &random))
            let bytes = Int64.random(in: 0..<100, using: &random)
            let place = model.firstIndex { $0.segment == segment }
            switch Int.random(in: 0..<4, using: &random) {
            case 0:
                policy.admit(segment, bytes: bytes, at: Self.now)
                if let place {
                    model[place].bytes = bytes
                } else {
                    model.append(Victim(segment: segment, bytes: bytes))
                }
            case 1:
                policy.touch(segment)
                if let place { model.append(model.remove(at: place)) }
            case 2:
                policy.resize(segment, bytes: bytes)
                if let place { model[place].bytes = bytes }
            default:
                policy.remove(segment)
                if let place { model.remove(at: place) }
            }
            #expect(policy.victims(toFree: .max) { _ in false } == model, "seed \(seed)")
            #expect(policy.count == model.count, "seed \(seed)")
            #expect(policy.usedBytes == model.reduce(0) { $0 + $1.bytes }, "seed \(seed)")
        }
    }
}
