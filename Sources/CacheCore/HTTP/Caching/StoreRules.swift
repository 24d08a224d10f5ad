extension OriginSettings {
    /// An origin's rules for storing, which override its responses.
    package struct StoreRules: Hashable, Sendable {
        /// Longer assets are not stored; nil: no limit.
        package var maxBytes: Int64?
        /// Media types that are never stored: `video/mp4`, or `video/*`.
        package var never: [String]
        /// Media types that are always stored, up to `maxBytes`.
        package var always: [String]

        package init(maxBytes: Int64? = nil, never: [String] = [], always: [String] = []) {
            self.maxBytes = maxBytes
            self.never = never
            self.always = always
        }

        /// Whether an asset with this type and length is stored. `isStorable`: its header fields permit it.
        func allow(type: String?, length: Int64?, isStorable: Bool) -> Bool {
            if let maxBytes, let length, length > maxBytes { return false }
            let essence = FieldText.lowered(FieldText.trimmed((type ?? "").prefix { $0 != ";" }))
            func isNamed(_ patterns: [String]) -> Bool { patterns.contains { Self.matches($0, essence) } }
            return !isNamed(never) && (isStorable || isNamed(always))
        }

        /// Whether a pattern matches a media type without parameters, in lower case.
        private static func matches(_ pattern: String, _ essence: String) -> Bool {
            let pattern = FieldText.lowered(pattern)
            return pattern.hasSuffix("/*") ? essence.hasPrefix(pattern.dropLast()) : essence == pattern
        }

        /// Whether `pattern` is a media type or `type/*` (RFC 9110 §8.3.1).
        package static func isPattern(_ pattern: String) -> Bool {
            let parts = pattern.split(separator: "/", omittingEmptySubsequences: false)
            return parts.count == 2 && parts.allSatisfy { FieldText.isToken(String($0)) } && parts[0] != "*"
        }
    }

    /// The maximum number of media types in a store rule.
    package static let maxStoreTypes = 64
}
