/// The `Cache-Control` directives of a response that a shared cache obeys (RFC 9111 §5.2.2).
package struct CacheControl: Hashable, Sendable {
    package var noStore = false
    package var noCache = false
    package var isPrivate = false
    /// The fields that a qualified `no-cache` or `private` names, in lower case. The response may be stored without
    /// them (§5.2.2.4, §5.2.2.7).
    package var withheldFields: Set<String> = []
    package var isPublic = false
    package var mustRevalidate = false
    package var proxyRevalidate = false
    package var noTransform = false
    package var mustUnderstand = false
    /// `immutable` (RFC 8246).
    package var isImmutable = false
    /// `max-age`; nil, like the other durations: the directive is absent.
    package var maxAge: Duration?
    /// `s-maxage`, for shared caches only.
    package var sharedMaxAge: Duration?
    /// `stale-while-revalidate` (RFC 5861 §3).
    package var staleWhileRevalidate: Duration?
    /// `stale-if-error` (RFC 5861 §4).
    package var staleIfError: Duration?
    /// Whether the directives come from a targeted field. `Expires` is then ignored, like `Cache-Control`
    /// (RFC 9213 §2.2).
    package var isTargeted = false

    package init() {}

    /// The largest number of seconds of a directive (§1.2.2).
    package static let maxSeconds: Int64 = 1 << 31

    /// Parses the values of the field, one for each field line.
    ///
    /// The first of several equal directives counts (§4.2.1). An invalid number of seconds counts as 0, so that the
    /// response is stale; a larger one than `maxSeconds` counts as `maxSeconds`. Unknown directives are ignored.
    package static func parse(_ values: [String]) -> CacheControl {
        var control = CacheControl()
        for directive in directives(values) { control.obey(directive.name, directive.argument) }
        return control
    }

    /// Fields of this size or more are treated as `no-store`. No legitimate field is that long.
    package static let maxBytes = 64 << 10

    /// The directives of a response or a request: names in lower case, arguments unchanged. If the values have
    /// `maxBytes` or more, the result is `no-store` alone.
    static func directives(_ values: [String]) -> [(name: String, argument: Substring?)] {
        guard values.reduce(0, { $0 + $1.utf8.count }) < maxBytes else { return [("no-store", nil)] }
        return directives(of: values)
    }

    /// Splits list members at the first `=`.
    private static func directives(of values: [String]) -> [(name: String, argument: Substring?)] {
        values.flatMap { FieldText.members(of: $0) }.map { directive in
            let equals = directive.utf8.firstIndex(of: UInt8(ascii: "="))
            let name = FieldText.lowered(FieldText.trimmed(directive[..<(equals ?? directive.endIndex)]))
            return (name, equals.map { directive[directive.utf8.index(after: $0)...] })
        }
    }

    /// Applies one directive.
    mutating func obey(_ name: String, _ argument: Substring?) {
        switch name {
        case "no-store": noStore = true
        case "no-cache": if !withholds(argument) { noCache = true }
        case "private": if !withholds(argument) { isPrivate = true }
        case "public": isPublic = true
        case "must-revalidate": mustRevalidate = true
        case "proxy-revalidate": proxyRevalidate = true
        case "no-transform": noTransform = true
        case "must-understand": mustUnderstand = true
        case "immutable": isImmutable = true
        case "max-age": maxAge = maxAge ?? Self.duration(argument)
        case "s-maxage": sharedMaxAge = sharedMaxAge ?? Self.duration(argument)
        case "stale-while-revalidate": staleWhileRevalidate = staleWhileRevalidate ?? Self.duration(argument)
        case "stale-if-error": staleIfError = staleIfError ?? Self.duration(argument)
        default: break
        }
    }

    /// Whether the directive is limited to the fields in its argument, added to `withheldFields`. An argument
    /// without valid names is ignored, and the directive applies as a whole.
    private mutating func withholds(_ argument: Substring?) -> Bool {
        guard let argument else { return false }
        let names = FieldText.members(of: Self.unquoted(argument)).map { FieldText.lowered($0) }
        guard !names.isEmpty, names.allSatisfy({ FieldText.isToken($0) }) else { return false }
        withheldFields.formUnion(names)
        return true
    }

    /// The argument without surrounding quotes.
    private static func unquoted(_ argument: Substring) -> String {
        let text = FieldText.trimmed(argument)
        guard text.utf8.count >= 2, text.utf8.first == UInt8(ascii: "\""), text.utf8.last == UInt8(ascii: "\"")
        else { return String(text) }
        return String(text.dropFirst().dropLast())
    }

    /// The number of seconds of an argument; 0 if it is missing or invalid.
    static func duration(_ argument: Substring?) -> Duration {
        guard let digits = argument.map(unquoted) else { return .zero }
        return .seconds(min(FieldText.clampedNumber(digits.utf8) ?? 0, maxSeconds))
    }
}
