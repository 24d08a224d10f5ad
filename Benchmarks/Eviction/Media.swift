import CacheCore
import CacheSimulation
import Foundation

/// Hit ratios of a media library in caches of several sizes, relative to all bytes read.
struct MediaCheck {
    private enum Unit: String, CaseIterable {
        /// Each read touches its block.
        case blocks
        /// A segment is touched at most once in 300 s.
        case segments
    }

    private struct Figures {
        var byteHitRatio: Double
        /// Hits among the bytes in the first 4 MiB of an asset.
        var startHitRatio: Double
        var writtenPerMissed: Double
    }

    /// Byte hit ratios in per cent at 1 and 10 %, of LRU, SIEVE and S3-FIFO in blocks, and of S3-FIFO in segments.
    static let targets: [String: [[Double]]] = [
        "media_a0.8": [[25.2, 31.8, 36.3, 36.3], [49.8, 52.8, 54.7, 55.2]],
        "media_a0.9": [[39.1, 45.2, 48.9, 48.9], [61.4, 64.5, 65.9, 66.3]],
        "media_a1.0": [[52.6, 58.8, 61.8, 61.8], [73.2, 75.6, 76.4, 76.7]],
    ]
    private static let tolerance = 0.3

    let trace: MediaTrace

    func run() -> Bool {
        var areAllNear = true
        for (place, permille) in [Int64(1), 10, 100].enumerated() {
            let capacity = trace.footprint / 1000 * permille
            print("\n\(trace.name), cache of \(Double(permille) / 10) %")
            print("byte hits, start-up hits (%), written ÷ missed")
            for unit in Unit.allCases {
                for algorithm in EvictionAlgorithm.allCases {
                    let figures = figures(algorithm, unit, capacity: capacity)
                    let target = place == 0 ? nil : target(algorithm, unit, in: Self.targets[trace.name]?[place - 1])
                    let isNear = target.map { abs($0 - figures.byteHitRatio) <= Self.tolerance } ?? true
                    areAllNear = areAllNear && isNear
                    print(
                        padded("\(algorithm.rawValue), \(unit.rawValue)", 20),
                        "\(figures.byteHitRatio.rounded(2))  \(figures.startHitRatio.rounded(2))",
                        " \(figures.writtenPerMissed.rounded(3))", target.map { " target \($0)" } ?? "",
                        isNear ? "" : "NOT within \(Self.tolerance)")
                    fflush(nil)
                }
            }
        }
        return areAllNear
    }

    private func target(_ algorithm: EvictionAlgorithm, _ unit: Unit, in targets: [Double]?) -> Double? {
        switch (algorithm, unit) {
        case (.lru, .blocks): targets?[0]
        case (.sieve, .blocks): targets?[1]
        case (.s3fifo, .blocks): targets?[2]
        case (.s3fifo, .segments): targets?[3]
        default: nil
        }
    }

    private func figures(_ algorithm: EvictionAlgorithm, _ unit: Unit, capacity: Int64) -> Figures {
        var cache = PolicySimulation(
            policy: algorithm.policy(capacityBytes: capacity),
            grid: unit == .blocks ? SegmentGrid(segmentBytes: MediaTrace.blockBytes) : nil,
            touchInterval: unit == .blocks ? .zero : .seconds(300))
        var (startBytes, startHitBytes): (Int64, Int64) = (0, 0)
        for read in trace.reads {
            let before = cache.tally.hitBytes
            cache.read(read.run, of: read.asset, at: read.at)
            if read.run.lowerBound < 4 << 20 {
                startBytes += read.run.length
                startHitBytes += cache.tally.hitBytes - before
            }
        }
        return Figures(
            byteHitRatio: 100 * cache.tally.byteHitRatio,
            startHitRatio: 100 * Double(startHitBytes) / Double(max(1, startBytes)),
            writtenPerMissed: Double(cache.tally.writtenBytes) / Double(max(1, cache.tally.missedBytes)))
    }
}
