import CacheCore

/// The entries of tracing systems in `tracestate`, newest first (W3C Trace Context Level 2 §3.3). Larder adds no entry
/// of its own.
package struct TraceState: Hashable, Sendable {
    /// The largest number of entries in a valid field (§3.3.1.1).
    private static let maxEntries = 32
    /// The largest size of a propagated field, in bytes (§3.3.1.5).
    private static let maxBytes = 512
    /// Entries above this size are removed first if the field is too long (§3.3.1.5).
    private static let largeEntryBytes = 128
    /// The largest size of a key and of a value, in bytes (§3.3.1.3).
    private static let maxPartBytes = 256

    /// The entries, separated by commas; empty without entries.
    package let text: String

    /// No entries.
    package init() { text = "" }

    /// Combines the values of all `tracestate` fields. If any entry is invalid or if there are more than 32, all are
    /// discarded. Of entries with equal keys, the first is kept. Above 512 bytes, whole entries are removed.
    package init(fields: [String]) {
        guard !fields.isEmpty, let entries = Self.entries(of: fields) else {
            text = ""
            return
        }
        text = Self.shortened(entries).joined(separator: ",")
    }

    /// The entries without blanks around them; nil if the list is invalid.
    private static func entries(of fields: [String]) -> [Substring]? {
        var entries: [Substring] = []
        var keys: Set<Substring> = []
        var count = 0
        for field in fields {
            for member in field.split(separator: ",") {
                let entry = FieldText.trimmed(member)
                guard !entry.isEmpty else { continue }
                count += 1
                guard count <= maxEntries, let equals = entry.utf8.firstIndex(of: UInt8(ascii: "=")) else { return nil }
                let key = entry[..<equals]
                guard isKey(key), isValue(entry[entry.utf8.index(after: equals)...]) else { return nil }
                if keys.insert(key).inserted { entries.append(entry) }
            }
        }
        return entries
    }

    /// `key`: a lower-case letter or digit, then up to 255 of `a`–`z`, `0`–`9`, `_`, `-`, `*`, `/`, `@`.
    private static func isKey(_ text: Substring) -> Bool {
        guard let first = text.utf8.first, isLowerOrDigit(first) else { return false }
        return text.utf8.count <= maxPartBytes
            && text.utf8.allSatisfy { isLowerOrDigit($0) || "_-*/@".utf8.contains($0) }
    }

    private static func isLowerOrDigit(_ byte: UInt8) -> Bool { (97...122).contains(byte) || FieldText.isDigit(byte) }

    /// `value`: 1 to 256 printable ASCII characters without `,` and `=`. Blanks at its end were removed before.
    private static func isValue(_ text: Substring) -> Bool {
        let size = text.utf8.count
        return (1...maxPartBytes).contains(size)
            && text.utf8.allSatisfy { (0x20...0x7E).contains($0) && $0 != UInt8(ascii: "=") }
    }

    /// Removes entries until the text has at most 512 bytes: large ones first, then from the end.
    private static func shortened(_ entries: [Substring]) -> [Substring] {
        var kept = entries
        var size = entries.reduce(0) { $0 + $1.utf8.count } + max(0, entries.count - 1)
        while size > maxBytes,
            let index = kept.lastIndex(where: { $0.utf8.count > largeEntryBytes }) ?? kept.indices.last
        {
            size -= kept.remove(at: index).utf8.count + 1
        }
        return kept
    }
}
