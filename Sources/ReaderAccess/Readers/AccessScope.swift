import CacheCore

/// The permission of a reader. A higher scope includes the lower ones.
package enum AccessScope: String, Hashable, Sendable, Comparable, ChoiceCodable {
    /// Content, and all calls that change nothing.
    case read
    /// Jobs, pins, tags and purges too.
    case write
    /// All calls.
    case admin

    private var rank: Int {
        switch self {
        case .read: 0
        case .write: 1
        case .admin: 2
        }
    }

    package static func < (left: Self, right: Self) -> Bool { left.rank < right.rank }
}
