/// The bytes that a power loss would discard, because they are written and not committed.
package struct CommitLag: Hashable, Sendable {
    /// The number of these bytes.
    package var bytes: Int64 = 0
    /// The age of the oldest of them.
    package var age: Duration = .zero
    /// The largest age since the start.
    package var longest: Duration = .zero

    package init() {}
}
