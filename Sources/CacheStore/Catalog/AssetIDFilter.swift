import CacheCore
import Synchronization

/// Bloom filter over the identifiers of the catalog's rows (Bloom, 1970): a first read of an unknown asset needs no query.
///
/// Rows are added before the transaction that inserts them commits and are never removed. Until every row that existed
/// at the start is added the filter answers `true` for all identifiers.
final class AssetIDFilter: Sendable {
    private struct State {
        var words: [UInt64]
        var isComplete = false
    }

    private static let bitsPerRow = 16
    /// Rows that the filter has room for beyond those of the start; with more of them it errs more often.
    private static let growth = 65_536

    private let state: Mutex<State>
    private let mask: UInt64

    /// - Parameter rows: the number of rows at the start.
    init(rows: Int) {
        var bits = 64
        while bits < Self.bitsPerRow * (rows + Self.growth) { bits *= 2 }
        mask = UInt64(bits - 1)
        state = Mutex(State(words: Array(repeating: 0, count: bits / 64)))
    }

    func add(_ id: AssetID) {
        state.withLock { state in
            for bit in bits(of: id) { state.words[Int(bit / 64)] |= 1 << (bit % 64) }
        }
    }

    /// Every row that existed at the start has been added.
    func complete() { state.withLock { $0.isComplete = true } }

    /// False where no row has this identifier.
    func mayContain(_ id: AssetID) -> Bool {
        state.withLock { state in
            !state.isComplete || bits(of: id).allSatisfy { state.words[Int($0 / 64)] & (1 << ($0 % 64)) != 0 }
        }
    }

    /// Identifiers are digests: their parts serve as independent hashes.
    private func bits(of id: AssetID) -> [UInt64] {
        [id.low & mask, (id.low >> 32) & mask, id.high & mask, (id.high >> 32) & mask]
    }
}
