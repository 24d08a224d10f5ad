package import CacheCore

/// The mounts of upstream URLs: finds the origins whose base URL or mirror contains a URL.
struct MountedURLs: Sendable {
    /// The base URL or a mirror of an origin.
    private struct Mount {
        let origin: Origin
        let url: UpstreamURL
        /// The normalized path, with a slash at its end.
        let path: String
    }

    /// The place of a URL below a mount.
    struct Place {
        let origin: Origin
        /// The normalized path below the mount, percent-encoded.
        let path: String
        /// As in the URL.
        let query: String?
    }

    /// By host, the longest base path first; base URLs before mirrors, then by the names of the origins.
    private let mounts: [String: [Mount]]

    init(of origins: [Origin], upstream: any Upstream) {
        var found: [(mount: Mount, isMirror: Bool)] = []
        for origin in origins {
            for (index, base) in ([origin.settings.baseURL] + origin.settings.mirrors).enumerated() {
                guard let url = try? upstream.parse(url: base), let path = PercentEncoding.normalized(path: url.path)
                else { continue }
                let mount = Mount(origin: origin, url: url, path: path.hasSuffix("/") ? path : path + "/")
                found.append((mount, index > 0))
            }
        }
        found.sort { left, right in
            let (one, other) = (left.mount, right.mount)
            if one.path.utf8.count != other.path.utf8.count { return one.path.utf8.count > other.path.utf8.count }
            if left.isMirror != right.isMirror { return right.isMirror }
            return one.origin.name < other.origin.name
        }
        mounts = Dictionary(grouping: found.map(\.mount)) { $0.url.host }
    }

    /// The places of the URL, that below the longest base URL first.
    func places(of url: UpstreamURL) -> [Place] {
        guard let path = PercentEncoding.normalized(path: url.path) else { return [] }
        return (mounts[url.host] ?? []).compactMap { mount in
            guard mount.url.isSameHost(as: url), path.hasPrefix(mount.path) else { return nil }
            return Place(origin: mount.origin, path: String(path.dropFirst(mount.path.count)), query: url.query)
        }
    }
}

extension AssetResolver {
    /// The reference with the name that ``MountedURLs`` gives to its URL: origin and path of the mount with the longest base
    /// URL. A URL that no mount contains stays, and so does one whose host `upstream.allowedHosts` permits, unless it
    /// `mustBeMounted`: `/v1/content?url=` reads the asset of this URL.
    func named(
        _ reference: AssetReference, in mounts: () -> MountedURLs, mustBeMounted: Bool = false
    ) -> AssetReference {
        guard case .url(let text, let key) = reference,
            let url = try? upstream.parse(url: text),
            mustBeMounted || (try? origins.allow(url)) == nil, let place = mounts().places(of: url).first
        else { return reference }
        let query = place.query.map { "?" + $0 } ?? ""
        return .mounted(origin: place.origin.name, path: place.path + query, key: key)
    }

    /// The mounts of the present origins.
    var mountedURLs: MountedURLs { MountedURLs(of: origins.all.map(\.origin), upstream: upstream) }
}

extension PrefetchJobs {
    /// Replaces upstream URLs by the names of the assets below the mounts that contain them, for the items of a request.
    package func named(_ items: [CreateJobRequest.Item]) -> [CreateJobRequest.Item] {
        let resolver = resolver
        lazy var mounts = resolver.mountedURLs
        return items.map { item in
            guard case .url = item.reference else { return item }
            var item = item
            item.reference = resolver.named(item.reference, in: { mounts }, mustBeMounted: item.list != nil)
            return item
        }
    }
}

extension Prober {
    /// Replaces upstream URLs by the names of the assets below the mounts that contain them.
    package func named(_ references: [AssetReference]) -> [AssetReference] {
        lazy var mounts = resolver.mountedURLs
        return references.map { resolver.named($0, in: { mounts }) }
    }
}
