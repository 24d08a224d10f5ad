package import CacheCore

/// The settings of origins that the authorization of readers depends on.
extension ContentReader {
    /// Whether content of the reference requires a token.
    package func access(for reference: AssetReference) -> OriginSettings.Access {
        guard case .mounted(let name, _, nil) = reference else { return .token }
        return resolver.origins[name]?.origin.settings.effectiveAccess ?? .token
    }

    /// Whether the upstream gets fields of the reader, so that its responses are for this reader.
    package func forwardsFields(for reference: AssetReference) -> Bool {
        guard case .mounted(let name, _, _) = reference else { return false }
        return resolver.origins[name].map { !$0.origin.settings.forwarded.isEmpty } ?? false
    }
}
