/// The condition of a change of a setting (`If-Match`, `If-None-Match`).
package enum Precondition: Hashable, Sendable {
    /// Change it unconditionally.
    case none
    /// The setting exists with this revision.
    case revision(Int64)
    /// The setting exists, with any revision.
    case exists
    /// The setting does not exist yet.
    case absent
}
