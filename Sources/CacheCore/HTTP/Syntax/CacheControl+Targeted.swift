import RawStructuredFieldValues

/// Targeted `Cache-Control` fields (RFC 9213).
extension CacheControl {
    /// The targeted fields that Larder obeys instead of `Cache-Control`. The first one that is valid and not empty
    /// counts (§2.2).
    private static let targets = ["Larder-Cache-Control", "CDN-Cache-Control"]

    /// The directives with a number of seconds; all others are Boolean, or name fields.
    private static let durations: Set<String> = [
        "max-age", "s-maxage", "stale-if-error", "stale-while-revalidate",
    ]

    /// The directives for this cache: those of a targeted field, otherwise those of `Cache-Control`.
    package static func effective(in headers: HeaderList) -> CacheControl {
        for name in targets {
            if let control = targeted(headers.values(name)) { return control }
        }
        return parse(headers.values("Cache-Control"))
    }

    /// Parses a targeted field. Nil if it is absent, empty or not a valid dictionary of structured fields (§2.1). A
    /// directive with a value of the wrong type is ignored.
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
