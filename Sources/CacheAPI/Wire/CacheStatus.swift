import CacheCore
package import CacheEngine
import RawStructuredFieldValues

/// The `Cache-Status` of an answer (RFC 9211).
package enum CacheStatus {
    /// The field's value: the upstream's own members first, Larder's last (§2), serialized as RFC 9651 §4.1 says.
    ///
    /// What the upstream sent and is no such list is left out: nobody could read ours behind it.
    package static func field(_ outcome: ReadOutcome, after upstream: [String] = []) -> String {
        let ours = ItemOrInnerList.item(Item(bareItem: .token("Larder"), parameters: parameters(outcome)))
        return text(members(upstream) + [ours]) ?? text([ours]) ?? "Larder"
    }

    private static func text(_ members: [ItemOrInnerList]) -> String? {
        var serializer = StructuredFieldValueSerializer()
        // Fails only for what the parser lets through and RFC 9651 has no text for.
        return (try? serializer.writeListFieldValue(members)).map { String(decoding: $0, as: UTF8.self) }
    }

    private static func members(_ lines: [String]) -> [ItemOrInnerList] {
        var parser = StructuredFieldValueParser(Array(lines.joined(separator: ", ").utf8))
        // A field that cannot be parsed is ignored as a whole (RFC 9651 §4.2).
        return lines.isEmpty ? [] : (try? parser.parseListFieldValue()) ?? []
    }

    /// §2.1–2.8, in the order that reads best.
    private static func parameters(_ outcome: ReadOutcome) -> OrderedMap<String, RFC9651BareItem> {
        var parameters: OrderedMap<String, RFC9651BareItem> = [:]
        if let forwarding = outcome.forwarding {
            parameters["fwd"] = .token(forwarding.rawValue)
        } else if outcome.requestClass != .error {
            parameters["hit"] = true
        }
        parameters["fwd-status"] = outcome.upstreamStatus.map { .integer(Int64($0)) }
        parameters["ttl"] = outcome.timeToLive.map { .integer(min(max($0.components.seconds, -largest), largest)) }
        if outcome.isStored { parameters["stored"] = true }
        if outcome.isCollapsed { parameters["collapsed"] = true }
        parameters["detail"] = outcome.detail.map { FieldText.isToken($0) ? .token($0) : .string($0) }
        return parameters
    }

    /// The largest integer of a structured field (RFC 9651 §3.3.1).
    private static let largest: Int64 = 999_999_999_999_999
}
