/// The parameter `URISigningPackage` of a URI, which holds a signed JWT: RFC 9246 §2.
///
/// It begins behind a reserved character (RFC 3986 §2.2), which may be percent-encoded, and ends before the next one.
/// So it is a field of a query (`?a=1&URISigningPackage=…`) or a parameter of a path segment (`;URISigningPackage=…`).
package enum SigningPackage {
    /// The name of the parameter, and of the cookie.
    package static let name = "URISigningPackage"

    private static let key = Array(name.utf8)
    private static let separators = Set(":/?#[]@!$&'()*+,;=".utf8)
    /// The separators inside a component: `sub-delims` of RFC 3986.
    private static let subDelimiters = Set("!$&'()*+,;=".utf8)

    /// Removes all packages from a target and returns them in order. A separator inside the component behind a package
    /// is removed with it, else the one in front of it.
    static func remove(from target: Substring) -> (rest: Substring, packages: [String]) {
        guard target.utf8.contains(key[0]) else { return (target, []) }  // most targets need no copy
        let bytes = Array(target.utf8)
        guard var found = first(in: bytes, from: 0) else { return (target, []) }
        var (rest, packages, end): ([UInt8], [String], Int) = ([], [], 0)
        while true {
            packages.append(String(decoding: bytes[found.value], as: UTF8.self))
            if found.value.upperBound < bytes.count, subDelimiters.contains(bytes[found.value.upperBound]) {
                rest += bytes[end..<found.start]
                end = found.value.upperBound + 1
            } else {
                rest += bytes[end..<max(end, found.separator)]
                end = found.value.upperBound
            }
            // The separator that was removed may also begin the next package.
            guard let next = first(in: bytes, from: max(found.value.upperBound, found.start)) else { break }
            found = next
        }
        return (String(decoding: rest + bytes[end...], as: UTF8.self)[...], packages)
    }

    /// The first package: the place of the separator in front of it, of its name, and of its value.
    private static func first(in bytes: [UInt8], from: Int) -> (separator: Int, start: Int, value: Range<Int>)? {
        var at = from
        while let start = bytes[at...].firstIndex(of: key[0]) {
            at = start + 1
            guard bytes[start...].starts(with: key), let separator = separator(before: start, in: bytes),
                let value = valueStart(after: start + key.count, in: bytes)
            else { continue }
            let end = bytes[value...].firstIndex { separators.contains($0) || $0 == UInt8(ascii: "%") } ?? bytes.count
            return (separator, start, value..<end)
        }
        return nil
    }

    /// The place of the separator that ends before an index; nil if there is none.
    private static func separator(before start: Int, in bytes: [UInt8]) -> Int? {
        if start >= 3, bytes[start - 3] == UInt8(ascii: "%"), let byte = decoded(bytes[(start - 2)..<start]) {
            return separators.contains(byte) ? start - 3 : nil
        }
        return start >= 1 && separators.contains(bytes[start - 1]) ? start - 1 : nil
    }

    /// The place behind the equals sign at an index; nil if there is none.
    private static func valueStart(after index: Int, in bytes: [UInt8]) -> Int? {
        let rest = bytes[index...]
        if rest.first == UInt8(ascii: "=") { return index + 1 }
        return rest.first == UInt8(ascii: "%") && decoded(rest.dropFirst().prefix(2)) == UInt8(ascii: "=")
            ? index + 3 : nil
    }

    private static func decoded(_ digits: ArraySlice<UInt8>) -> UInt8? {
        digits.count == 2 ? UInt8(String(decoding: digits, as: UTF8.self), radix: 16) : nil
    }
}
