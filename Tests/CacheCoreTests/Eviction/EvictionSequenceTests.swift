import CacheSimulation
import Testing

@testable import CacheCore

@Suite struct EvictionSequenceTests {
    static let cases = Sequence.all.flatMap { sequence in
        sequence.outcomes.map { (sequence.capacity, sequence.requests, $0.policy, $0.text) }
    }

    @Test("Evicts the same segments as the reference", arguments: cases)
    func evictsWhatTheReferenceEvicts(
        capacity: Int64, requests: String, policy: Sequence.Policy, outcomes: String
    ) {
        var cache = PolicySimulation(policy: policy.make(capacityBytes: capacity))
        var sizes: [Substring: Int64] = [:]
        var answers: [String] = []
        for request in requests.split(separator: " ") {
            let parts = request.split(separator: ":")
            let bytes = parts.count > 1 ? Int64(parts[1]) ?? 0 : sizes[parts[0]] ?? 1
            sizes[parts[0]] = bytes
            answers.append(answer(to: parts[0], bytes: bytes, of: &cache, under: policy, smallTarget: capacity / 10))
        }
        #expect(answers.joined(separator: " ") == outcomes)
        #expect(cache.usedBytes <= capacity)
    }

    private func answer(
        to name: Substring, bytes: Int64, of cache: inout PolicySimulation, under policy: Sequence.Policy,
        smallTarget: Int64
    ) -> String {
        let segment = SegmentID(named: name)
        if case .s3fifoRefusing = policy, bytes >= smallTarget { return "x" }
        if case .fifo = policy, cache.contains(segment) { return "+" }
        return switch cache.read(segment, bytes: bytes) {
        case .hit: "+"
        case .refused: "x"
        case .miss(let evicted): evicted.isEmpty ? "-" : evicted.map(\.segment.name).sorted().joined(separator: ",")
        }
    }
}

extension SegmentID {
    /// A segment with a name of up to eight letters.
    init(named name: some StringProtocol) {
        self.init(asset: AssetID(high: name.utf8.reduce(0) { $0 << 8 | UInt64($1) }, low: 0), index: 0)
    }

    var name: String {
        let bytes = (0..<8).reversed().map { UInt8(truncatingIfNeeded: asset.high >> (8 * UInt64($0))) }
        return String(decoding: bytes.filter { $0 != 0 }, as: UTF8.self)
    }
}
