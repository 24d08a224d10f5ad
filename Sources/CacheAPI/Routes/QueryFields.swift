import CacheCore

/// Strict reader for query parameters: percent-decoded, each at most once. Unknown ones are errors, as in bodies.
///
/// All errors are `.invalidField` with the parameter's name. The reading methods return nil for an absent parameter.
struct QueryFields {
    private var values: [String: String] = [:]

    /// Parses a query (nil: none). Throws for a parameter that is not in `keys`, that occurs twice, that is not UTF-8,
    /// or that contains a NUL character.
    init(_ query: String?, accepting keys: [String]) throws(CacheError) {
        for pair in (query ?? "").split(separator: "&") {
            let halves = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let name = String(decoding: PercentEncoding.decoded(halves[0]), as: UTF8.self)
            guard keys.contains(name) else { throw CacheError(.invalidField(name), "The parameter is unknown.") }
            guard
                let value = String(
                    validating: PercentEncoding.decoded(halves.count > 1 ? halves[1] : ""), as: UTF8.self)
            else { throw CacheError(.invalidField(name), "The value is not UTF-8 text.") }
            guard !value.utf8.contains(0) else { throw CacheError(.invalidField(name), "The value has a NUL byte.") }
            guard values.updateValue(value, forKey: name) == nil else {
                throw CacheError(.invalidField(name), "The parameter occurs twice.")
            }
        }
    }

    /// Whether a query has the parameter, by the same reading of its names.
    static func contains(_ key: String, in query: String?) -> Bool {
        (query ?? "").split(separator: "&").contains { pair in
            String(decoding: PercentEncoding.decoded(pair.prefix { $0 != "=" }), as: UTF8.self) == key
        }
    }

    func string(_ key: String) -> String? { values[key] }

    /// A parameter that must be present and not empty.
    func required(_ key: String) throws(CacheError) -> String {
        guard let value = values[key], !value.isEmpty else {
            throw CacheError(.invalidField(key), "The parameter is missing.")
        }
        return value
    }

    /// An asset ID.
    func assetID(_ key: String) throws(CacheError) -> AssetID? {
        guard let text = values[key] else { return nil }
        guard let id = AssetID(text) else {
            throw CacheError(.invalidField(key), "An asset ID with 32 hexadecimal digits is expected here.")
        }
        return id
    }

    /// A truth value: `true` or `false`; nil if the parameter is missing.
    func bool(_ key: String) throws(CacheError) -> Bool? {
        switch values[key] {
        case nil: return nil
        case "true": return true
        case "false": return false
        default: throw CacheError(.invalidField(key), "true or false is expected here.")
        }
    }

    /// A whole number in `range`.
    func integer(_ key: String, in range: ClosedRange<Int64>) throws(CacheError) -> Int64? {
        guard let text = values[key] else { return nil }
        guard let number = Int64(text), range.contains(number) else {
            throw CacheError(
                .invalidField(key),
                "A whole number between \(range.lowerBound) and \(range.upperBound) is expected here.")
        }
        return number
    }

    /// A duration given in seconds, in `range`.
    func seconds(_ key: String, in range: ClosedRange<Double>) throws(CacheError) -> Duration? {
        guard let text = values[key] else { return nil }
        guard let number = Double(text), range.contains(number) else {
            throw CacheError(
                .invalidField(key), "A number between \(range.lowerBound) and \(range.upperBound) is expected here.")
        }
        return .seconds(number)
    }

    /// One of the cases of `Choice`, by raw value.
    func choice<Choice: RawRepresentable<String> & CaseIterable>(
        _ key: String, _ type: Choice.Type = Choice.self, of choices: [Choice] = Array(Choice.allCases)
    ) throws(CacheError) -> Choice? {
        guard let text = values[key] else { return nil }
        guard let choice = choices.first(where: { $0.rawValue == text }) else {
            throw CacheError(
                .invalidField(key),
                "One of \(choices.map(\.rawValue).joined(separator: ", ")) is expected here.")
        }
        return choice
    }

    /// Whether the number of entries of all pages is requested: `total`, default false.
    func wantsTotal() throws(CacheError) -> Bool { try bool("total") ?? false }

    /// The page size of a list, `limit`: 1 to 1,000, default 100.
    func limit() throws(CacheError) -> Int { Int(try integer("limit", in: 1...1000) ?? 100) }
}
