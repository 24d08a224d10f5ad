import CacheCore
import CacheStore

/// Finds the assets that a purge selects by keys or URLs.
struct PurgeNames: Sendable {
    private let resolver: AssetResolver
    private let mounts: MountedURLs

    init(resolver: AssetResolver) {
        self.resolver = resolver
        mounts = resolver.mountedURLs
    }

    /// The assets with these keys, and all their variants. The result may contain identifiers of assets that do not
    /// exist.
    func assets(keyed keys: [String]) async throws(CacheError) -> Set<AssetID> {
        let all = resolver.origins.all.map(\.origin.name) + [Origin.absoluteName]
        let named = keys.flatMap { key in origins(of: key, among: all).map { ($0, key) } }
        let variants = try await resolver.catalog.variants(of: named)
        return Set(keys.map { AssetID(naming: $0) } + variants)
    }

    /// The assets that requests for these URLs would read, in any spelling. Throws `.invalidField` with the index of
    /// an invalid URL.
    func assets(at urls: [String]) async throws(CacheError) -> Set<AssetID> {
        var (keys, queries): (Set<String>, [String: Set<String?>]) = ([], [:])
        for (index, text) in urls.enumerated() {
            let url: UpstreamURL
            do {
                url = try resolver.upstream.parse(url: text)
            } catch {
                throw .invalid("urls[\(index)]", error.message)
            }
            keys.formUnion(self.keys(of: url))
            for spelling in Self.spellings(of: url) { queries[spelling, default: []].insert(url.query) }
        }
        var ids = try await assets(keyed: Array(keys))
        // Assets with a given key, or of a base URL that has changed: their keys do not contain the URL.
        let fetched = try await resolver.catalog.assets(fetchedFrom: Array(queries.keys))
        for (id, name, url) in fetched {
            guard let asked = queries[url.withoutQuery] else { continue }
            let settings = resolver.origins[name]?.origin.settings ?? resolver.origins.absolute
            let stored = try? resolver.upstream.parse(url: url).query
            if asked.contains(where: { settings.significant($0) == settings.significant(stored) }) { ids.insert(id) }
        }
        return ids
    }

    /// The keys of the URL: the absolute key, and one for each mount that contains it.
    func keys(of url: UpstreamURL) -> Set<String> {
        var keys: Set = [AssetKey.absolute(url, digest: AssetResolver.digest).text]
        for place in mounts.places(of: url) {
            let key = try? AssetKey.mounted(
                origin: place.origin, path: place.path, query: place.query, digest: AssetResolver.digest)
            if let key { keys.insert(key.text) }
        }
        return keys
    }

    /// The names that ``PurgeScope`` compares; nil: no keys and URLs are given, or too many.
    func scope(keys: [String]?, urls: [String]?) -> Set<AssetID>? {
        guard keys != nil || urls != nil, (keys ?? []).count + (urls ?? []).count <= PurgeScope.mostNames else {
            return nil
        }
        let parsed = (urls ?? []).compactMap { try? resolver.upstream.parse(url: $0) }
        let names = (keys ?? []) + parsed.flatMap { Array(self.keys(of: $0)) + Array(Self.spellings(of: $0)) }
        return Set(names.map { AssetID(naming: $0) })
    }

    /// The origins that the key may belong to: only a mounted key contains its origin.
    private func origins(of key: String, among origins: [String]) -> [String] {
        guard key.hasPrefix("/o/") else { return origins }
        return [String(key.dropFirst(3).prefix { $0 != "/" })]
    }

    /// Possible spellings of the URL without its query: as given, normalized, decoded, and with lower-case hexadecimal
    /// digits.
    static func spellings(of url: UpstreamURL) -> Set<String> {
        let given = url.redacted
        guard given.hasSuffix(url.path), let path = PercentEncoding.normalized(path: url.path) else { return [given] }
        let front = given.dropLast(url.path.count)
        var spellings: Set = [given, front + path, front + lowered(path)]
        if let decoded = String(validating: PercentEncoding.decoded(path), as: UTF8.self) {
            spellings.insert(front + decoded)
        }
        return spellings
    }

    /// The path with lower-case hexadecimal digits in its percent-encoded octets (RFC 3986 §2.1).
    private static func lowered(_ path: String) -> String {
        var (text, digits): ([UInt8], Int) = ([], 0)
        for byte in path.utf8 {
            text.append(digits > 0 && (UInt8(ascii: "A")...UInt8(ascii: "F")).contains(byte) ? byte | 0x20 : byte)
            digits = byte == UInt8(ascii: "%") ? 2 : max(0, digits - 1)
        }
        return String(decoding: text, as: UTF8.self)
    }
}
