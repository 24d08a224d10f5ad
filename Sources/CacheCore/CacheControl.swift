/// A response's `Cache-Control`: the directives a shared cache obeys (RFC 9111 §5.2.2).
package struct CacheControl: Hashable, Sendable {
    package var noStore = false
    /// Also in its qualified form, which a cache may treat as the plain one (§5.2.2.4).
    package var noCache = false
    /// Also in its qualified form (§5.2.2.7).
    package var isPrivate = false
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

    package init() {}

    /// The largest number of seconds a directive can say (§1.2.2).
    package static let maxSeconds: Int64 = 1 << 31

    /// Reads the field's values, one per field line.
    ///
    /// Of a directive given twice the first counts (§4.2.1); a number of seconds that is none is zero, so that what is
    /// garbled is stale; one too large is `maxSeconds`. Unknown directives are passed over.
    package static func parse(_ values: [String]) -> CacheControl {
        var control = CacheControl()
        for value in values {
            for member in FieldText.members(of: value) { control.obey(member) }
        }
        return control
    }

    private mutating func obey(_ directive: Substring) {
        let equals = directive.utf8.firstIndex(of: UInt8(ascii: "="))
        let name = FieldText.lowered(FieldText.trimmed(directive[..<(equals ?? directive.endIndex)]))
        let argument = equals.map { directive[directive.utf8.index(after: $0)...] }
        switch name {
        case "no-store": noStore = true
        case "no-cache": noCache = true
        case "private": isPrivate = true
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

    private static func duration(_ argument: Substring?) -> Duration {
        guard var digits = argument.map(FieldText.trimmed) else { return .zero }
        if digits.utf8.count >= 2, digits.utf8.first == UInt8(ascii: "\""), digits.utf8.last == UInt8(ascii: "\"") {
            digits = digits.dropFirst().dropLast()
        }
        return .seconds(min(FieldText.clampedNumber(digits.utf8) ?? 0, maxSeconds))
    }
}
