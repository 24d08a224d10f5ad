package import CacheCore

/// The settings of an origin that the authorization of readers depends on.
package struct ContentAccess: Hashable, Sendable {
    /// Whether content requires a token.
    package var access: OriginSettings.Access
    /// Whether a signature covers the parameter CMCD.
    package var coversCMCD: Bool

    /// Of an absolute URL, a known asset, or an unknown origin.
    package init() { (access, coversCMCD) = (.token, false) }

    package init(_ settings: OriginSettings) {
        (access, coversCMCD) = (settings.effectiveAccess, settings.cmcd == .key)
    }
}

extension ContentReader {
    /// The access to content of the reference.
    package func access(for reference: AssetReference) -> ContentAccess {
        guard case .mounted(let name, _, nil) = reference else { return ContentAccess() }
        return resolver.origins[name].map { ContentAccess($0.origin.settings) } ?? ContentAccess()
    }

    /// Whether the upstream gets fields of the reader, so that its responses are for this reader.
    package func forwardsFields(for reference: AssetReference) -> Bool {
        guard case .mounted(let name, _, _) = reference else { return false }
        return resolver.origins[name].map { !$0.origin.settings.forwarded.isEmpty } ?? false
    }
}
