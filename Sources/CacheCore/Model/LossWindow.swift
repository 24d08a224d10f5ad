/// What a crash would lose: bytes that are written and not committed yet.
package struct LossWindow: Hashable, Sendable {
    package var bytes: Int64 = 0
    /// How long the oldest of them has waited.
    package var age: Duration = .zero
    /// The longest that any has waited since the start.
    package var longest: Duration = .zero

    package init() {}
}
