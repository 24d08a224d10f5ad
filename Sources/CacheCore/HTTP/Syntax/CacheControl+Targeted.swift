import RawStructuredFieldValues

/// Targeted `Cache-Control` fields (RFC 9213).
extension CacheControl {
    /// The fields that Larder obeys in place of `Cache-Control`, the first one that is valid and not empty (§2.2).
    private static let targets = ["Larder-Cache-Control", "CDN-Cache-Control"]

    private static let durations: Set<String> = [
        "max-age", "s-maxage", "stale-if-error", "stale-while-revalidate",
    ]

    /// The directives of a response for this cache: those of a targeted field, else those of `Cache-Control`.
    package static func effective(in headers: HeaderList) -> CacheControl {
        for name in targets {
            if let control = targeted(headers.values(name)) { return control }
        }
        return parse(headers.values("Cache-Control"))
    }

    /// Nil where the field is absent, empty or no dictionary of structured fields (§2.1). Directives with a value of another
    /// type than theirs are ignored.
    private static func targeted(_ lines: [String]) -> CacheControl? {
        guard !lines.isEmpty, lines.reduce(0, { $0 + $1.utf8.count }) < maxBytes else { return nil }
        var parser = StructuredFieldValueParser(Array(lines.joined(separator: ", ").utf8))
        guard let members = try? parser.parseDictionaryFieldValue(), !members.isEmpty else { return nil }
        var control = CacheControl()
        control.isTargeted = true
        for (name, member) in members {
            guard case .item(let item) = member else { continue }
            switch item.rfc9651BareItem {
            case .integer(let seconds) where seconds >= 0 && durations.contains(name):
                control.obey(name, String(seconds)[...])
            case .bool(true) where !durations.contains(name): control.obey(name, nil)
            case .string(let names) where ["no-cache", "private"].contains(name): control.obey(name, names[...])
            default: break
            }
        }
        return control
    }
}
