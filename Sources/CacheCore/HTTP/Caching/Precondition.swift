/// The condition under which a setting is changed.
package enum Precondition: Hashable, Sendable {
    case none
    /// The setting exists in this revision.
    case revision(Int64)
    case exists
    case absent
}
