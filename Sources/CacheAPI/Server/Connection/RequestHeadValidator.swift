import CacheCore
import NIOHTTP1

/// Rejects request heads which the HTTP decoder accepts and RFC 9112 forbids: targets (§3.2), `Host` (§3.2) and transfer
/// codings (§6.1).
enum RequestHeadValidator {
    /// Throws an error for a head that is to be rejected. The authority of an absolute target replaces `Host` (§3.2.2).
    static func check(_ head: inout HTTPRequestHead) throws(CacheError) {
        try checkCodings(head)
        try checkHost(head)
        guard let authority = try authority(of: head) else { return }
        head.headers.replaceOrAdd(name: "Host", value: authority)
    }

    /// Throws `.malformedRequest` unless `chunked` is the last coding and occurs once, and `.notImplemented` for any
    /// other coding (RFC 9112 §6.1, §7).
    private static func checkCodings(_ head: HTTPRequestHead) throws(CacheError) {
        let codings = head.headers[canonicalForm: "Transfer-Encoding"].map { $0.lowercased() }
        guard !codings.isEmpty else { return }
        guard codings.last == "chunked", !codings.dropLast().contains("chunked") else {
            throw CacheError(.malformedRequest, "chunked must be the last transfer coding and occur once.")
        }
        guard codings.count == 1 else {
            throw CacheError(.notImplemented, "The only supported transfer coding is chunked.")
        }
    }

    /// Throws `.malformedRequest` unless the request has exactly one valid `Host` (HTTP/1.0: at most one).
    private static func checkHost(_ head: HTTPRequestHead) throws(CacheError) {
        let hosts = head.headers["Host"]
        guard hosts.count < 2, hosts.count == 1 || head.version == .http1_0 else {
            throw CacheError(.malformedRequest, "The request must have one Host field; it has \(hosts.count).")
        }
        guard hosts.allSatisfy(isHost) else {
            throw CacheError(.malformedRequest, "The Host field must be a host name or address with an optional port.")
        }
    }

    /// The authority of an absolute target, without user information; nil for a path and for `OPTIONS *`.
    ///
    /// Throws `.malformedRequest` for any other target.
    private static func authority(of head: HTTPRequestHead) throws(CacheError) -> String? {
        let target = head.uri
        if target.utf8.first == UInt8(ascii: "/") || (target == "*" && head.method == .OPTIONS) { return nil }
        let scheme = ["http://", "https://"].first { target.prefix($0.count).lowercased() == $0 }
        guard let scheme else {
            throw CacheError(.malformedRequest, "The request target must be a path or an http or https URL.")
        }
        let text = target.dropFirst(scheme.count).prefix { !"/?#".contains($0) }
        let authority = text.split(separator: "@", omittingEmptySubsequences: false).last.map(String.init) ?? ""
        guard !authority.isEmpty, isHost(authority) else {
            throw CacheError(.malformedRequest, "The request target's host is missing or invalid.")
        }
        return authority
    }

    /// Whether the text is `uri-host [ ":" port ]` (RFC 3986 §3.2.2) with a host that is not empty, as http requires
    /// (RFC 9110 §4.2.1).
    static func isHost(_ text: String) -> Bool {
        var host = Array(text.utf8)[...]
        if let colon = host.lastIndex(of: UInt8(ascii: ":")), !host[colon...].contains(UInt8(ascii: "]")) {
            let port = host[(colon + 1)...]
            guard port.allSatisfy(FieldText.isDigit),
                port.isEmpty || UInt16(String(decoding: port, as: UTF8.self)) != nil
            else {
                return false
            }
            host = host[..<colon]
        }
        guard host.first == UInt8(ascii: "[") else { return !host.isEmpty && host.allSatisfy(isNameByte) }
        return host.count > 4 && host.last == UInt8(ascii: "]")
            && host.dropFirst().dropLast().allSatisfy { isNameByte($0) || $0 == UInt8(ascii: ":") }
    }

    /// Whether the byte is an unreserved character, a sub-delimiter or a percent sign (RFC 3986 §3.2.2 `reg-name`).
    private static func isNameByte(_ byte: UInt8) -> Bool {
        FieldText.isDigit(byte) || FieldText.isLetter(byte) || "-._~%!$&'()*+,;=".utf8.contains(byte)
    }
}
