extension OriginSettings {
    /// What is kept of an origin, whatever its answers say.
    package struct StoreRules: Hashable, Sendable {
        /// Nothing longer is kept; nil: whatever its length.
        package var maxBytes: Int64?
        /// Media types that are never kept: `video/mp4`, or `video/*`.
        package var never: [String]
        /// Those that always are, but for what is too long.
        package var always: [String]

        package init(maxBytes: Int64? = nil, never: [String] = [], always: [String] = []) {
            self.maxBytes = maxBytes
            self.never = never
            self.always = always
        }

        /// Whether an asset is kept that the upstream describes so, and by its headers `isStorable`.
        func allow(type: String?, length: Int64?, isStorable: Bool) -> Bool {
            if let maxBytes, let length, length > maxBytes { return false }
            let essence = FieldText.lowered(FieldText.trimmed((type ?? "").prefix { $0 != ";" }))
            func isNamed(_ patterns: [String]) -> Bool { patterns.contains { Self.matches($0, essence) } }
            return !isNamed(never) && (isStorable || isNamed(always))
        }

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

    /// The most media types that a store rule may name.
    package static let maxStoreTypes = 64
}
