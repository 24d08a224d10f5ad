import CacheCore

/// A credential that is printed as `•••` in descriptions, dumps and logs.
struct MaskedSecret: Hashable, Sendable {
    static let mask = OriginSettings.mask

    /// The credential itself, for comparison and authentication.
    let exposed: String

    init(_ exposed: String) { self.exposed = exposed }
}

extension MaskedSecret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    var description: String { Self.mask }
    var debugDescription: String { Self.mask }
    var customMirror: Mirror { Mirror(self, children: [:]) }
}
