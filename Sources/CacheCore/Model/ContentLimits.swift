/// The origins and path prefixes that a token is limited to, and the checks of assets against them. The files that a
/// job or its playlists name, purges, lists and reads are checked here.
///
/// The checks use the asset's key, which has a normalised path: other spellings of a path are the same key, and dot
/// segments are resolved before.
package struct ContentLimits: Hashable, Sendable {
    /// The names of the origins with allowed content; nil allows all.
    package let origins: Set<String>?
    /// The beginnings of the content paths that are allowed, as configured; nil allows all.
    package let prefixes: [String]?
    /// The valid prefixes in comparable form.
    private let covered: [PathPrefix]

    /// An invalid prefix allows no path.
    package init(origins: Set<String>? = nil, prefixes: [String]? = nil) {
        self.origins = origins
        self.prefixes = prefixes
        covered = prefixes.map { $0.compactMap { PathPrefix($0) } } ?? []
    }

    /// Whether there is any limit.
    package var isLimited: Bool { origins != nil || prefixes != nil }

    /// Whether the content at `path` is inside the limits. With prefixes, a path that is no ``ContentPath`` is not.
    ///
    /// - Parameters:
    ///   - origin: The name of the asset's origin.
    ///   - path: The path of the request target, such as `/o/media/a.mp4`, without the query.
    package func admits(origin: String, path: String) -> Bool {
        if let origins, !origins.contains(origin) { return false }
        guard prefixes != nil else { return true }
        guard let path = ContentPath(path) else { return false }
        return covered.contains { $0.covers(path) }
    }

    /// Whether some content of the origin can be inside the limits.
    package func mayPermit(origin: String) -> Bool {
        if let origins, !origins.contains(origin) { return false }
        let mount = Array("/o/\(origin)/".utf8)
        return prefixes == nil || covered.contains { $0.decoded.starts(with: mount) || mount.starts(with: $0.decoded) }
    }

    /// Whether the content at the path, which begins with `/o/`, is inside the limits.
    package func permits(path: String) -> Bool {
        let parts = path.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false)
        guard parts.count == 4, parts[0].isEmpty, parts[1] == "o" else { return false }
        return admits(origin: String(parts[2]), path: path)
    }

    /// Whether all keys with this prefix are inside the limits. The prefix must contain the whole name of the origin.
    package func permits(allBelow prefix: String) -> Bool { !prefix.contains("?") && permits(path: prefix) }

    /// Whether all content inside the other limits is inside these.
    package func confine(_ other: ContentLimits) -> Bool {
        guard isLimited else { return true }
        if let prefixes = other.prefixes, prefixes.allSatisfy({ permits(allBelow: $0) }) { return true }
        return other.origins?.allSatisfy { permits(allBelow: "/o/\($0)/") } ?? false
    }

    /// Whether the asset with the key is inside the limits. A key that the client has chosen has no path; it is outside.
    package func permits(key: String) -> Bool {
        // Behind the path there can be a digest of the query, and a mark of the variant.
        permits(path: String(key.prefix { $0 != "?" }))
    }

    /// Whether the asset of a path below a mount is inside the limits; its query does not matter. Throws as
    /// ``AssetKey/mounted(origin:path:query:digest:)``.
    package func permits(origin: String, path: String) throws(CacheError) -> Bool {
        let path = path.prefix { $0 != "?" }
        let mount = Origin(name: origin, settings: OriginSettings(baseURL: ""))
        let key = try AssetKey.mounted(
            origin: mount, path: String(path.hasPrefix("/") ? path.dropFirst() : path), query: nil, digest: { $0 })
        return permits(path: key.text)
    }
}

/// The token that a job or a plan belongs to, with its limits at that time. Two tokens of one identifier with other limits,
/// such as JSON Web Tokens of one subject, are different owners.
package struct TokenOwner: Hashable, Sendable {
    /// The identifier of the token; no secret.
    package let id: String
    package let limits: ContentLimits

    package init(id: String, limits: ContentLimits = ContentLimits()) {
        self.id = id
        self.limits = limits
    }

    /// A text that differs between owners, for keys.
    package var name: String {
        "\(id) \(limits.origins?.sorted().joined(separator: ",") ?? "*") \(limits.prefixes?.joined(separator: ",") ?? "*")"
    }

    /// The error for an access outside the limits of the token.
    package func refusal(_ object: String) -> CacheError {
        CacheError(.tokenScope, "The token \(id) is limited to some origins or paths and does not permit \(object).")
    }

    /// Throws `.tokenScope` unless the reference is inside the limits. `key` looks up the key of a known asset; nil: there
    /// is none. An unknown asset is refused like a forbidden one, so that a token does not show which assets exist.
    ///
    /// A limited token must name assets by origin and path: an absolute URL has no mount, and a `key` could name an
    /// asset of another origin.
    package func check(
        _ reference: AssetReference, key: (AssetID) async throws(CacheError) -> String?
    ) async throws(CacheError) {
        guard limits.isLimited else { return }
        switch reference {
        case .known(let id):
            guard let key = try await key(id), limits.permits(key: key) else { throw refusal("this asset") }
        default: try check(reference)
        }
    }

    /// The same for a reference that needs no look-up; `.known` is refused.
    package func check(_ reference: AssetReference) throws(CacheError) {
        guard limits.isLimited else { return }
        guard case .mounted(let origin, let path, nil) = reference else {
            throw refusal("an asset that is not named by its origin and path alone")
        }
        guard try limits.permits(origin: origin, path: path) else { throw refusal("this path") }
    }
}
