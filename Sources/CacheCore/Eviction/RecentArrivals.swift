/// Since when no more has come than a part of the store: what may be spared for being new, however much comes.
struct RecentArrivals: Sendable {
    /// Bytes are counted since `began`; before that as many had come since `start`. In seconds since 1970.
    private var began: UInt32 = 0
    private(set) var start: UInt32 = 0
    private var bytes: Int64 = 0

    /// Bytes have come before they were counted here: about as many as may be spared since that second.
    mutating func begin(at second: UInt32) { start = max(start, second) }

    /// Since `start` there will have been half of `most` at least, and about as much at most.
    mutating func note(_ arrived: Int64, at second: UInt32, atMost most: Int64) {
        bytes &+= arrived
        guard bytes >= most / 2 else { return }
        (start, began, bytes) = (began, second, 0)
    }
}
