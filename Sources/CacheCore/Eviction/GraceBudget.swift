/// Limits the bytes that the grace period protects: a burst of new bytes must not force out all others.
///
/// Only two counters are kept. Bytes are counted from `began` on; when they reach half of the budget, `start` moves to
/// `began`. The bytes since `start` are therefore between half of the budget and about the full budget.
struct GraceBudget: Sendable {
    /// The second (since 1970) from which `bytes` counts.
    private var began: UInt32 = 0
    /// Segments that arrived up to this second (since 1970) are not protected.
    private(set) var start: UInt32 = 0
    /// Bytes that arrived since `began`.
    private var bytes: Int64 = 0

    /// Sets `start` after a restart, from the persisted arrival times: about one budget arrived since that second.
    mutating func begin(at second: UInt32) { start = max(start, second) }

    /// Records arrived bytes. `most`: the budget in bytes.
    mutating func note(_ arrived: Int64, at second: UInt32, atMost most: Int64) {
        bytes &+= arrived
        guard bytes >= most / 2 else { return }
        (start, began, bytes) = (began, second, 0)
    }
}
