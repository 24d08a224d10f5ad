import CacheCore

/// Bloom filter over the asset identifiers of the catalog (Bloom, 1970): the first read of an unknown asset needs no
/// query.
///
/// False positives cost one query. False negatives cannot occur: a row is added before the transaction that inserts it
/// commits, and identifiers are never removed. Until every row that existed at the start has been added, the filter
/// answers `true` for all identifiers.
final class AssetIDFilter: Sendable {
    /// The filter's bits, guarded by `state`.
    private struct State {
        /// The bit array, 64 bits per word.
        var words: [UInt64]
        var isComplete = false
    }

    /// Filter size per row, in bits: four of them are set per identifier.
    private static let bitsPerRow = 16
    /// Number of new rows, beyond those at the start, that the filter is sized for. More rows raise the false-positive
    /// rate.
    private static let growth = 65_536

    /// Guards the bits and the completion flag.
    private let state: OrderedMutex<State>
    /// Number of bits minus one. The number of bits is a power of two.
    private let mask: UInt64

    /// Creates an empty, incomplete filter.
    ///
    /// - Parameter rows: the number of rows at the start.
    init(rows: Int) {
        var bits = 64
        // A power of two, so that a mask replaces the modulo operation.
        while bits < Self.bitsPerRow * (rows + Self.growth) { bits *= 2 }
        mask = UInt64(bits - 1)
        state = OrderedMutex(.leaf, State(words: Array(repeating: 0, count: bits / 64)))
    }

    /// Adds an identifier. Call it before the row's transaction commits.
    func add(_ id: AssetID) {
        state.withLock { state in
            for bit in bits(of: id) { state.words[Int(bit / 64)] |= 1 << (bit % 64) }
        }
    }

    /// Marks the filter as complete: every row that existed at the start has been added.
    func complete() { state.withLock { $0.isComplete = true } }

    /// Returns false only if no row has this identifier.
    func mayContain(_ id: AssetID) -> Bool {
        state.withLock { state in
            !state.isComplete || bits(of: id).allSatisfy { state.words[Int($0 / 64)] & (1 << ($0 % 64)) != 0 }
        }
    }

    /// The four bit positions of an identifier. Identifiers are digests, so their parts serve as independent hash
    /// values.
    private func bits(of id: AssetID) -> [UInt64] {
        [id.low & mask, (id.low >> 32) & mask, id.high & mask, (id.high >> 32) & mask]
    }
}
