/// A response's `Cache-Control`: the directives a shared cache obeys (RFC 9111 §5.2.2).
package struct CacheControl: Hashable, Sendable {
    package var noStore = false
    package var noCache = false
    package var isPrivate = false
    /// The fields that a qualified `no-cache` or `private` names, in lower case: the response may be kept, they may not
    /// (§5.2.2.4, §5.2.2.7).
    package var withheldFields: Set<String> = []
    package var isPublic = false
    package var mustRevalidate = false
    package var proxyRevalidate = false
    package var noTransform = false
    package var mustUnderstand = false
    /// RFC 8246.
    package var isImmutable = false
    package var maxAge: Duration?
    package var sharedMaxAge: Duration?
    /// RFC 5861 §3.
    package var staleWhileRevalidate: Duration?
    /// RFC 5861 §4.
    package var staleIfError: Duration?
    /// Whether a targeted field says all this: `Expires` is ignored with `Cache-Control` then (RFC 9213 §2.2).
    package var isTargeted = false

    package init() {}

    /// The largest number of seconds a directive can say (§1.2.2).
    package static let maxSeconds: Int64 = 1 << 31

    /// Reads the field's values, one per field line.
    ///
    /// Of a directive given twice the first counts (§4.2.1); a number of seconds that is none is zero, so that what is
    /// garbled is stale; one too large is `maxSeconds`. Unknown directives are passed over.
    package static func parse(_ values: [String]) -> CacheControl {
        var control = CacheControl()
        for directive in directives(values) { control.obey(directive.name, directive.argument) }
        return control
    }

    /// More than this is nothing that anybody means.
    package static let maxBytes = 64 << 10

    /// The directives of the field's values, those of requests alike: names in lower case, arguments as they came. Of
    /// `maxBytes` and more it is `no-store` alone.
    static func directives(_ values: [String]) -> [(name: String, argument: Substring?)] {
        guard values.reduce(0, { $0 + $1.utf8.count }) < maxBytes else { return [("no-store", nil)] }
        return directives(of: values)
    }

    private static func directives(of values: [String]) -> [(name: String, argument: Substring?)] {
        values.flatMap { FieldText.members(of: $0) }.map { directive in
            let equals = directive.utf8.firstIndex(of: UInt8(ascii: "="))
            let name = FieldText.lowered(FieldText.trimmed(directive[..<(equals ?? directive.endIndex)]))
            return (name, equals.map { directive[directive.utf8.index(after: $0)...] })
        }
    }

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

    /// Whether the directive concerns the fields its argument names only; an argument that names none, or garbled ones,
    /// leaves the directive a plain one.
    private mutating func withholds(_ argument: Substring?) -> Bool {
        guard let argument else { return false }
        let names = FieldText.members(of: Self.unquoted(argument)).map { FieldText.lowered($0) }
        guard !names.isEmpty, names.allSatisfy({ FieldText.isToken($0) }) else { return false }
        withheldFields.formUnion(names)
        return true
    }

    private static func unquoted(_ argument: Substring) -> String {
        let text = FieldText.trimmed(argument)
        guard text.utf8.count >= 2, text.utf8.first == UInt8(ascii: "\""), text.utf8.last == UInt8(ascii: "\"")
        else { return String(text) }
        return String(text.dropFirst().dropLast())
    }

    /// The seconds an argument says; zero where it is missing or no number.
    static func duration(_ argument: Substring?) -> Duration {
        guard let digits = argument.map(unquoted) else { return .zero }
        return .seconds(min(FieldText.clampedNumber(digits.utf8) ?? 0, maxSeconds))
    }
}
