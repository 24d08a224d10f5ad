package import CacheCore

/// Reads the members of one JSON object strictly: every member must be known, every value of the right type.
///
/// Errors are `.invalidField` with the field's path as the client would write it (`items[2].url`).
package struct JSONFields {
    private let members: [String: JSON]
    private let path: String

    /// Throws where `json` is no object, holds a member that `keys` does not, or null for a member outside `nullable`.
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
                throw CacheError(.invalidField(Self.join(path, member.key)), "There is no such field.")
            }
            guard member.value != .null || nullable.contains(member.key) else {
                throw CacheError(
                    .invalidField(Self.join(path, member.key)), "null is not allowed here; leave the field out.")
            }
            members[member.key] = member.value
        }
        self.members = members
    }

    /// Whether the member is there, `null` or not.
    package func has(_ key: String) -> Bool { members[key] != nil }

    package func isNull(_ key: String) -> Bool { members[key] == .null }

    /// The field's path from the body's top.
    package func name(_ key: String) -> String { Self.join(path, key) }

    package func invalid(_ key: String, _ reason: String) -> CacheError {
        CacheError(.invalidField(name(key)), reason)
    }

    /// The value itself; nil where it is absent or `null`.
    package func json(_ key: String) -> JSON? {
        guard let value = members[key], value != .null else { return nil }
        return value
    }

    package func string(_ key: String) throws(CacheError) -> String? {
        guard let value = json(key) else { return nil }
        return try text(value, key)
    }

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

    /// A number of seconds; at most ten years.
    package func seconds(_ key: String, from least: Double = 0) throws(CacheError) -> Duration? {
        try number(key, in: least...315_360_000).map { .seconds($0) }
    }

    package func instant(_ key: String) throws(CacheError) -> Timestamp? {
        guard let text = try string(key) else { return nil }
        guard let time = RFC3339.parse(text) else {
            throw invalid(key, "An instant like 2026-01-31T12:00:00Z is expected here.")
        }
        return time
    }

    package func choice<Choice: RawRepresentable<String> & CaseIterable>(
        _ key: String, _ type: Choice.Type = Choice.self
    ) throws(CacheError) -> Choice? {
        guard let text = try string(key) else { return nil }
        guard let choice = Choice(rawValue: text) else {
            throw invalid(key, "One of \(Choice.allCases.map(\.rawValue).joined(separator: ", ")) is expected here.")
        }
        return choice
    }

    package func array(_ key: String, atMost limit: Int = 10_000) throws(CacheError) -> [JSON]? {
        guard let value = json(key) else { return nil }
        guard case .array(let values) = value else { throw invalid(key, "An array is expected here.") }
        guard values.count <= limit else { throw invalid(key, "At most \(limit) entries are taken at once.") }
        return values
    }

    package func strings(_ key: String, atMost limit: Int = 10_000) throws(CacheError) -> [String]? {
        guard let values = try array(key, atMost: limit) else { return nil }
        var strings: [String] = []
        for (index, value) in values.enumerated() {
            strings.append(try text(value, "\(key)[\(index)]"))
        }
        return strings
    }

    /// An array of texts, each parsed; `expectation` is the error for those of which `parse` makes nil.
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

    /// A NUL would end the text where C reads it.
    private func text(_ value: JSON, _ key: String) throws(CacheError) -> String {
        guard case .string(let text) = value else { throw invalid(key, "A string is expected here.") }
        guard !text.utf8.contains(0) else { throw invalid(key, "The text contains a NUL character.") }
        return text
    }

    private static func join(_ path: String, _ key: String) -> String { path.isEmpty ? key : path + "." + key }
}
