import CacheCore

/// The permission of a reader.
package enum AccessScope: String, Hashable, Sendable, ChoiceCodable {
    /// Content, and all calls that change nothing.
    case read
    /// Jobs, pins, tags and purges too.
    case write
    /// Signed URLs only: `POST /v1/signatures`.
    case sign
    /// All calls.
    case admin

    /// Whether this scope permits calls that need the other one: `read` < `write` < `admin`, and `sign` < `admin`.
    package func includes(_ other: Self) -> Bool {
        switch (self, other) {
        case (.admin, _), (.write, .write), (_, .read): self != .sign
        default: self == other
        }
    }
}
