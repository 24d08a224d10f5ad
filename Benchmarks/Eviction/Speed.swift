import CacheCore
import Foundation
import TestChance

/// The speed of a policy with a million segments, and its memory.
struct SpeedCheck {
    private static let segmentBytes: Int64 = 1 << 20

    let segments: Int

    func run() -> Bool {
        print("\n\(segments) segments: processor time; target 1 M operations/s and 64 bytes a segment")
        return EvictionAlgorithm.allCases.map { run($0) }.allSatisfy(\.self)
    }

    /// One operation is a call of the policy; a read that misses makes five.
    private func run(_ algorithm: EvictionAlgorithm) -> Bool {
        let capacity = Int64(segments) * Self.segmentBytes
        var policy = algorithm.policy(capacityBytes: capacity)
        for number in 0..<segments { policy.admit(Self.segment(UInt64(number)), bytes: Self.segmentBytes) }
        var random = SeededRandom(seed: 1)
        var (operations, hits) = (0, 0)
        let reads = 4 * segments
        let started = clock()
        for _ in 0..<reads {
            // Squared, so that some segments are read far more often; half of all distinct segments do not fit.
            let share = Double(random.next() >> 11) / Double(1 << 53)
            let segment = Self.segment(UInt64(share * share * Double(2 * segments)))
            operations += 1
            if policy.touch(segment) {
                hits += 1
                continue
            }
            policy.expect(segment)
            let missing = policy.usedBytes + Self.segmentBytes - capacity
            for victim in policy.victims(toFree: missing, sparing: { _ in false }) {
                policy.remove(victim.segment)
                operations += 1
            }
            policy.admit(segment, bytes: Self.segmentBytes)
            operations += 3
        }
        let seconds = Double(clock() - started) / Double(CLOCKS_PER_SEC)
        let rate = Double(operations) / seconds / 1e6
        let bytes = Double(policy.memoryBytes) / Double(max(1, policy.count))
        let (readRate, hitRatio) = (Double(reads) / seconds / 1e6, 100 * Double(hits) / Double(reads))
        print(
            padded(algorithm.rawValue, 7), "\(rate.rounded(2)) M operations/s, \(readRate.rounded(2)) M reads/s,",
            "hits \(hitRatio.rounded(1)) %, \(bytes.rounded(1)) bytes a segment")
        return rate >= 1 && bytes <= 64
    }

    private static func segment(_ number: UInt64) -> SegmentID {
        let asset = number / 16 &* 0x9E37_79B9_7F4A_7C15
        return SegmentID(asset: AssetID(high: asset, low: ~asset), index: Int32(number % 16))
    }
}

extension Double {
    func rounded(_ digits: Int) -> Double {
        let scale = (0..<digits).reduce(1.0) { scale, _ in scale * 10 }
        return (self * scale).rounded() / scale
    }
}

func padded(_ text: String, _ width: Int) -> String { text.padding(toLength: width, withPad: " ", startingAt: 0) }
