/// Strict reader for the members of one JSON object: unknown members and values of a wrong type are errors.
///
/// All errors are `.invalidField` with the field's path from the top of the body (`items[2].url`). The reading methods
/// return nil for an absent member and for null; ``has(_:)`` and ``isNull(_:)`` tell these cases apart.
package struct JSONFields {
    private let members: [String: JSON]
    /// The path of the object; empty for the body itself.
    private let path: String

    /// Throws if `json` is not an object, has a member that is not in `keys`, or has null for a member that is not in
    /// `nullable`.
    package init(
        _ json: JSON, at path: String = "", accepting keys: [String], nullable: Set<String> = []
    ) throws(CacheError) {
        guard case .object(let list) = json else {
            throw CacheError(.invalidField(path.isEmpty ? "(body)" : path), "A JSON object is expected here.")
        }
        self.path = path
        var members: [String: JSON] = [:]
        for member in list {
            guard keys.contains(member.key) else {
                throw CacheError(.invalidField(Self.join(path, member.key)), "The field is unknown; check its name.")
            }
            guard member.value != .null || nullable.contains(member.key) else {
                throw CacheError(
                    .invalidField(Self.join(path, member.key)), "null is not allowed here; leave the field out.")
            }
            members[member.key] = member.value
        }
        self.members = members
    }

    /// Whether the member is present, also with the value null.
    package func has(_ key: String) -> Bool { members[key] != nil }

    /// Whether the member is present with the value null.
    package func isNull(_ key: String) -> Bool { members[key] == .null }

    /// The field's path from the top of the body.
    package func name(_ key: String) -> String { Self.join(path, key) }

    /// The error for a field with an invalid value.
    package func invalid(_ key: String, _ reason: String) -> CacheError {
        CacheError(.invalidField(name(key)), reason)
    }

    /// Any value but null.
    package func json(_ key: String) -> JSON? {
        guard let value = members[key], value != .null else { return nil }
        return value
    }

    /// A string without NUL characters.
    package func string(_ key: String) throws(CacheError) -> String? {
        guard let value = json(key) else { return nil }
        return try text(value, key)
    }

    /// A truth value.
    package func bool(_ key: String) throws(CacheError) -> Bool? {
        guard let value = json(key) else { return nil }
        guard case .bool(let truth) = value else { throw invalid(key, "true or false is expected here.") }
        return truth
    }

    /// A whole number in `range`.
    package func integer(_ key: String, in range: ClosedRange<Int64> = 0...Int64.max) throws(CacheError) -> Int64? {
        guard let value = json(key) else { return nil }
        guard case .integer(let number) = value else { throw invalid(key, "A whole number is expected here.") }
        guard range.contains(number) else {
            throw invalid(key, "The number must lie between \(range.lowerBound) and \(range.upperBound).")
        }
        return number
    }

    /// A number in `range`, whole or not.
    package func number(_ key: String, in range: ClosedRange<Double>) throws(CacheError) -> Double? {
        guard let value = json(key) else { return nil }
        let number: Double
        switch value {
        case .integer(let whole): number = Double(whole)
        case .number(let real): number = real
        default: throw invalid(key, "A number is expected here.")
        }
        guard range.contains(number) else {
            throw invalid(key, "The number must lie between \(range.lowerBound) and \(range.upperBound).")
        }
        return number
    }

    /// A duration given in seconds: from `least` to ten years.
    package func seconds(_ key: String, from least: Double = 0) throws(CacheError) -> Duration? {
        try number(key, in: least...315_360_000).map { .seconds($0) }
    }

    /// A point in time as an RFC 3339 text.
    package func instant(_ key: String) throws(CacheError) -> Timestamp? {
        guard let text = try string(key) else { return nil }
        guard let time = RFC3339.parse(text) else {
            throw invalid(key, "An instant like 2026-01-31T12:00:00Z is expected here.")
        }
        return time
    }

    /// One of the cases of `Choice`, by raw value.
    package func choice<Choice: RawRepresentable<String> & CaseIterable>(
        _ key: String, _ type: Choice.Type = Choice.self
    ) throws(CacheError) -> Choice? {
        guard let text = try string(key) else { return nil }
        guard let choice = Choice(rawValue: text) else {
            throw invalid(key, "One of \(Choice.allCases.map(\.rawValue).joined(separator: ", ")) is expected here.")
        }
        return choice
    }

    /// An array of at most `limit` values.
    package func array(_ key: String, atMost limit: Int = 10_000) throws(CacheError) -> [JSON]? {
        guard let value = json(key) else { return nil }
        guard case .array(let values) = value else { throw invalid(key, "An array is expected here.") }
        guard values.count <= limit else { throw invalid(key, "At most \(limit) entries are allowed.") }
        return values
    }

    /// An array of at most `limit` strings.
    package func strings(_ key: String, atMost limit: Int = 10_000) throws(CacheError) -> [String]? {
        guard let values = try array(key, atMost: limit) else { return nil }
        var strings: [String] = []
        for (index, value) in values.enumerated() {
            strings.append(try text(value, "\(key)[\(index)]"))
        }
        return strings
    }

    /// An array of strings, each converted by `parse`. `expectation` is the message of the error if `parse` returns
    /// nil.
    package func values<Value>(
        _ key: String, atMost limit: Int = 10_000, _ expectation: String, _ parse: (String) -> Value?
    ) throws(CacheError) -> [Value]? {
        guard let texts = try strings(key, atMost: limit) else { return nil }
        var values: [Value] = []
        for (index, text) in texts.enumerated() {
            guard let value = parse(text) else { throw invalid("\(key)[\(index)]", expectation) }
            values.append(value)
        }
        return values
    }

    /// Returns a string. Rejects NUL characters, because C functions would take one for the end of the text.
    private func text(_ value: JSON, _ key: String) throws(CacheError) -> String {
        guard case .string(let text) = value else { throw invalid(key, "A string is expected here.") }
        guard !text.utf8.contains(0) else { throw invalid(key, "The text contains a NUL character.") }
        return text
    }

    /// Joins an object's path and a member's name.
    private static func join(_ path: String, _ key: String) -> String { path.isEmpty ? key : path + "." + key }
}
