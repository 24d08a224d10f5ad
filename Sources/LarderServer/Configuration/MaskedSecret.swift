/// A credential that does not print itself: descriptions, dumps and logs show `•••`.
struct MaskedSecret: Hashable, Sendable {
    static let mask = "•••"

    /// The credential itself, for comparing and sending.
    let exposed: String

    init(_ exposed: String) { self.exposed = exposed }
}

extension MaskedSecret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    var description: String { Self.mask }
    var debugDescription: String { Self.mask }
    var customMirror: Mirror { Mirror(self, children: [:]) }
}
