import CacheCore
package import CacheEngine
import RawStructuredFieldValues

/// Renders the `Cache-Status` response field (RFC 9211).
package enum CacheStatus {
    /// The value of the field, serialized by RFC 9651 §4.1: the members of upstream caches first, Larder's last (RFC
    /// 9211 §2).
    ///
    /// Upstream values that are not a valid list are omitted, because they would make the whole field unreadable.
    package static func field(_ outcome: ReadOutcome, after upstream: [String] = []) -> String {
        guard !upstream.isEmpty, let before = text(members(upstream)), !before.isEmpty else { return member(outcome) }
        return before + ", " + member(outcome)
    }

    /// The members as text; nil if one cannot be serialized.
    private static func text(_ members: [ItemOrInnerList]) -> String? {
        var serializer = StructuredFieldValueSerializer()
        // Fails only for values that the parser accepts and RFC 9651 cannot represent.
        return (try? serializer.writeListFieldValue(members)).map { String(decoding: $0, as: UTF8.self) }
    }

    /// Parses the upstream's field lines; empty if they are invalid.
    private static func members(_ lines: [String]) -> [ItemOrInnerList] {
        var parser = StructuredFieldValueParser(Array(lines.joined(separator: ", ").utf8))
        // A field that cannot be parsed is ignored as a whole (RFC 9651 §4.2).
        return lines.isEmpty ? [] : (try? parser.parseListFieldValue()) ?? []
    }

    /// Larder's own member with its parameters (RFC 9211 §2.1–2.8).
    private static func member(_ outcome: ReadOutcome) -> String {
        var text = "Larder"
        if let forwarding = outcome.forwarding {
            text += ";fwd=" + forwarding.rawValue
        } else if outcome.requestClass != .error {
            text += ";hit"
        }
        if let status = outcome.upstreamStatus { text += ";fwd-status=\(status)" }
        if let left = outcome.timeToLive { text += ";ttl=\(min(max(left.components.seconds, -largest), largest))" }
        if outcome.isStored { text += ";stored" }
        if outcome.isCollapsed { text += ";collapsed" }
        if let detail = outcome.detail { text += ";detail=" + (FieldText.isToken(detail) ? detail : quoted(detail)) }
        return text
    }

    /// The text as a quoted string (RFC 9651 §4.1.6). Characters outside printable ASCII become `?`.
    private static func quoted(_ text: String) -> String {
        let plain = text.unicodeScalars.map { (0x20..<0x7F).contains($0.value) ? $0 : "?" }
        return plain.reduce(into: "\"") { $0 += ($1 == "\"" || $1 == "\\" ? "\\" : "") + String($1) } + "\""
    }

    /// The largest integer of a structured field (RFC 9651 §3.3.1).
    private static let largest: Int64 = 999_999_999_999_999
}
