/// The query parameter `CMCD` (Common Media Client Data, CTA-5004 §2.2), which players append to the URL of a request.
///
/// It describes the state of the player and says nothing about the content. Its name is compared with the case of its
/// letters, after percent-decoding.
package enum CMCDParameter {
    private static let name = Array("CMCD".utf8)

    /// The query without the parameter; nil if nothing is left. A query without the parameter stays byte for byte.
    package static func removed(from query: String?) -> String? {
        guard let query, isPresent(in: query) else { return query }
        let kept = query.utf8.split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: false).filter {
            !isParameter($0)
        }
        return kept.isEmpty ? nil : kept.map { String(Substring($0)) }.joined(separator: "&")
    }

    /// A URL or a request target without the parameter.
    package static func removed(fromTarget target: String) -> String {
        guard let mark = target.utf8.firstIndex(of: UInt8(ascii: "?")) else { return target }
        let end = target.utf8[mark...].firstIndex(of: UInt8(ascii: "#")) ?? target.endIndex
        let query = String(target[target.utf8.index(after: mark)..<end])
        guard isPresent(in: query) else { return target }
        return target[..<mark] + (removed(from: query).map { "?" + $0 } ?? "") + target[end...]
    }

    /// Whether the query has the parameter.
    package static func isPresent(in query: String) -> Bool {
        // Most queries contain neither the first letter nor an escape of it.
        guard query.utf8.contains(where: { $0 == name[0] || $0 == UInt8(ascii: "%") }) else { return false }
        return query.utf8.split(separator: UInt8(ascii: "&")).contains(where: isParameter)
    }

    private static func isParameter(_ pair: Substring.UTF8View) -> Bool {
        PercentEncoding.decoded(Substring(pair.prefix { $0 != UInt8(ascii: "=") })) == name
    }
}
