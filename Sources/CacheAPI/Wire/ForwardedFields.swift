package import CacheCore

/// The statement of one proxy about the connection that it has received.
package struct ForwardedHop: Hashable, Sendable {
    /// The other end of that connection; nil: unknown, or an obfuscated name.
    package var address: NetworkAddress?
    /// `http` or `https`; nil: not stated.
    package var proto: String?
    /// The host that the client has named, with its port; nil: not stated.
    package var host: String?

    package init(address: NetworkAddress?, proto: String? = nil, host: String? = nil) {
        self.address = address
        self.proto = proto
        self.host = host
    }

    /// The hops of `Forwarded` (RFC 7239 §4), the first proxy first. Throws `.malformedRequest`.
    package static func forwarded(_ values: [String]) throws(CacheError) -> [ForwardedHop] {
        var hops: [ForwardedHop] = []
        for value in values {
            for element in try split(value, at: ",") where !FieldText.trimmed(element[...]).isEmpty {
                hops.append(try hop(element))
            }
        }
        return hops
    }

    private static func hop(_ element: String) throws(CacheError) -> ForwardedHop {
        var (hop, names) = (ForwardedHop(address: nil), Set<String>())
        for pair in try split(element, at: ";") {
            let pair = FieldText.trimmed(pair[...])
            guard !pair.isEmpty else { continue }
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let name = parts[0].lowercased()
            guard parts.count == 2, !name.isEmpty, names.insert(name).inserted, let value = unquoted(parts[1]) else {
                throw refusal("Forwarded", pair)
            }
            switch name {
            case "for": hop.address = try node(value, "Forwarded")
            case "proto": hop.proto = try scheme(value, "Forwarded")
            case "host": hop.host = try self.host(value, "Forwarded")
            default: break
            }
        }
        return hop
    }

    /// The hops of `X-Forwarded-For`, the first proxy first. `protos` and `hosts`: the values of `X-Forwarded-Proto` and
    /// `X-Forwarded-Host`; the last ones are those of the nearest proxy. Throws `.malformedRequest`.
    package static func xForwardedFor(
        _ values: [String], protos: [String] = [], hosts: [String] = []
    ) throws(CacheError) -> [ForwardedHop] {
        var hops: [ForwardedHop] = []
        for value in values {
            for member in value.split(separator: ",") {
                let text = FieldText.trimmed(member)
                if !text.isEmpty { hops.append(ForwardedHop(address: try node(String(text), "X-Forwarded-For"))) }
            }
        }
        let proto = try last(of: protos).map { (text) throws(CacheError) in try scheme(text, "X-Forwarded-Proto") }
        let host = try last(of: hosts).map { (text) throws(CacheError) in try self.host(text, "X-Forwarded-Host") }
        for index in hops.indices { (hops[index].proto, hops[index].host) = (proto, host) }
        return hops
    }

    /// The last member of a list; nil if there is none.
    private static func last(of values: [String]) -> String? {
        values.flatMap { $0.split(separator: ",") }.map { String(FieldText.trimmed($0)) }.last { !$0.isEmpty }
    }

    /// An address with an optional port. Nil for `unknown` and an obfuscated name (RFC 7239 §6).
    private static func node(_ text: String, _ field: String) throws(CacheError) -> NetworkAddress? {
        if text.lowercased() == "unknown" || text.hasPrefix("_") { return nil }
        if let address = NetworkAddress(text) { return address }
        guard let colon = text.lastIndex(of: ":") ?? text.indices.last.map({ text.index(after: $0) }) else {
            throw refusal(field, text[...])
        }
        var host = text[..<colon]
        let port = text[colon...].dropFirst()
        if text.hasSuffix("]") { host = text[...] }
        if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
        let isPort = text.hasSuffix("]") || UInt16(port) != nil || port.hasPrefix("_")
        guard isPort, let address = NetworkAddress(host) else { throw refusal(field, text[...]) }
        return address
    }

    private static func scheme(_ text: String, _ field: String) throws(CacheError) -> String {
        let scheme = text.lowercased()
        guard scheme == "http" || scheme == "https" else { throw refusal(field, text[...]) }
        return scheme
    }

    private static func host(_ text: String, _ field: String) throws(CacheError) -> String {
        guard RequestHeadValidator.isHost(text) else { throw refusal(field, text[...]) }
        return text
    }

    /// The value of a token or a quoted string; nil if it is neither.
    private static func unquoted(_ text: Substring) -> String? {
        guard text.hasPrefix("\"") else {
            let isToken = !text.isEmpty && !text.utf8.contains { $0 <= 0x20 || $0 >= 0x7F || $0 == UInt8(ascii: "\"") }
            return isToken ? String(text) : nil
        }
        var (value, isEscaped) = ("", false)
        let inner = text.dropFirst().dropLast()
        guard text.count > 1, text.hasSuffix("\"") else { return nil }
        for character in inner {
            if !isEscaped, character == "\\" {
                isEscaped = true
                continue
            }
            guard isEscaped || character != "\"" else { return nil }
            value.append(character)
            isEscaped = false
        }
        return isEscaped ? nil : value
    }

    /// The parts between separators outside quoted strings. Throws for a string without an end.
    private static func split(_ text: String, at separator: Character) throws(CacheError) -> [String] {
        var (parts, isQuoted, isEscaped) = ([""], false, false)
        for character in text {
            if !isQuoted, character == separator {
                parts.append("")
                continue
            }
            if character == "\"", !isEscaped { isQuoted.toggle() }
            isEscaped = isQuoted && !isEscaped && character == "\\"
            parts[parts.count - 1].append(character)
        }
        guard !isQuoted else { throw refusal("Forwarded", text[...]) }
        return parts
    }

    private static func refusal(_ field: String, _ text: Substring) -> CacheError {
        CacheError(.malformedRequest, "The \(field) field contains \"\(text.prefix(64))\", which is not valid there.")
    }
}
