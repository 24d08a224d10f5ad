import CacheCore

/// Members of documents of the API. Absent members, null and other types are nil.
extension JSON {
    func text(_ key: String) -> String? { self[key]?.string }

    func integer(_ key: String) -> Int64? {
        guard case .integer(let number) = self[key] else { return nil }
        return number
    }

    func number(_ key: String) -> Double? {
        switch self[key] {
        case .integer(let whole): Double(whole)
        case .number(let real): real
        default: nil
        }
    }

    func isTrue(_ key: String) -> Bool { self[key] == .bool(true) }

    /// The values of an array; empty if there is none.
    func list(_ key: String) -> [JSON] {
        guard case .array(let values) = self[key] else { return [] }
        return values
    }

    /// The inner object; without one an object without members.
    func object(_ key: String) -> JSON { self[key] ?? [:] }

    /// A timestamp of the API.
    func time(_ key: String) -> Timestamp? { text(key).flatMap(RFC3339.parse) }
}
