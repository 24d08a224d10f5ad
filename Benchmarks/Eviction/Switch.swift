import CacheCore

/// The time under the lock, which delays the recording of reads, of a change of algorithm with many segments.
struct SwitchCheck {
    private static let mostMilliseconds = 20.0

    let segments: Int

    func run() -> Bool {
        print("\n\(segments) segments, change of algorithm: ms; target under the lock \(Self.mostMilliseconds)")
        var settings = PolicySettings(capacityBytes: 4 << 30, minFreeDiskBytes: 0, algorithm: .lru)
        var ledger = SpaceLedger(settings: settings)
        let start = Timestamp(seconds: 1_780_000_000)
        for number in 0..<segments {
            let asset = AssetID(high: UInt64(number / 3) &* 0x9E37_79B9_7F4A_7C15, low: UInt64(number / 3))
            ledger.arrived(ByteRange(offset: Int64(number % 3) << 20, length: 1 << 20), of: asset, at: start)
        }
        _ = ledger.recordAll()
        return EvictionAlgorithm.allCases.reversed().enumerated().map { step, algorithm in
            settings.algorithm = algorithm
            return change(&ledger, to: settings, at: start + .seconds(1000 * Int64(step + 1)))
        }.allSatisfy(\.self)
    }

    private func change(_ ledger: inout SpaceLedger, to settings: PolicySettings, at now: Timestamp) -> Bool {
        let clock = ContinuousClock()
        let started = clock.now
        ledger.adopt(settings)
        guard let copy = ledger.beginRebuilding() else { return false }
        ledger.read(0..<1, of: AssetID(high: 0, low: 0), at: now)  // the first change after a copy copies the storage
        let begun = clock.now
        let rebuilt = copy.rebuilt()
        let made = clock.now
        let replaced = ledger.finishRebuilding(rebuilt).replaced
        let finished = clock.now
        let locked = milliseconds(begun - started) + milliseconds(finished - made)
        print(
            padded(settings.algorithm.rawValue, 7), "under the lock \(locked.rounded(2)),",
            "outside the lock \(milliseconds(made - begun).rounded(1)), from \(replaced.form.algorithm.rawValue)",
            locked <= Self.mostMilliseconds ? "" : "NOT within \(Self.mostMilliseconds)")
        return locked <= Self.mostMilliseconds
    }

    private func milliseconds(_ duration: Duration) -> Double { duration.inSeconds * 1000 }
}
