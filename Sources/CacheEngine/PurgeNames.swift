import CacheCore
import CacheStore

/// Finds the assets that a purge names by keys or URLs.
struct PurgeNames: Sendable {
    let resolver: AssetResolver

    /// The assets with these keys, variants included; also identifiers of assets that do not exist.
    func assets(keyed keys: [String]) async throws(CacheError) -> Set<AssetID> {
        let all = resolver.origins.all.map(\.origin.name) + [Origin.absoluteName]
        let named = keys.flatMap { key in origins(of: key, among: all).map { ($0, key) } }
        let variants = try await resolver.catalog.variants(of: named)
        return Set(keys.map { AssetID(naming: $0) } + variants)
    }

    /// The assets that requests for these URLs read, whatever their spelling. Throws `.invalidField` with the URL's place.
    func assets(at urls: [String]) async throws(CacheError) -> Set<AssetID> {
        var (keys, queries): (Set<String>, [String: Set<String?>]) = ([], [:])
        for (index, text) in urls.enumerated() {
            let url: UpstreamURL
            do {
                url = try resolver.upstream.parse(url: text)
            } catch {
                throw CacheError(.invalidField("urls[\(index)]"), error.message)
            }
            keys.formUnion(self.keys(of: url))
            for spelling in Self.spellings(of: url) { queries[spelling, default: []].insert(url.query) }
        }
        var ids = try await assets(keyed: Array(keys))
        // Assets under a given key, or of a base URL that was changed: their keys do not tell the URL.
        let fetched = try await resolver.catalog.assets(fetchedFrom: Array(queries.keys))
        for (id, name, url) in fetched {
            guard let asked = queries[String(url.prefix { $0 != "?" && $0 != "#" })] else { continue }
            let rule = name == Origin.absoluteName ? .all : resolver.origins[name]?.origin.settings.keyQuery ?? .all
            let stored = try? resolver.upstream.parse(url: url).query
            if asked.contains(where: { rule.significant($0) == rule.significant(stored) }) { ids.insert(id) }
        }
        return ids
    }

    /// The keys of the URL: absolute, and below the mounts that lead there.
    func keys(of url: UpstreamURL) -> Set<String> {
        let absolute = AssetKey.absolute(url, digest: AssetResolver.digest).text
        return Set(resolver.origins.all.flatMap { mountedKeys(of: url, below: $0.origin) } + [absolute])
    }

    /// Only a mounted key tells its origin.
    private func origins(of key: String, among origins: [String]) -> [String] {
        guard key.hasPrefix("/o/") else { return origins }
        return [String(key.dropFirst(3).prefix { $0 != "/" })]
    }

    /// The keys of the URL below an origin's base URL and its mirrors.
    private func mountedKeys(of url: UpstreamURL, below origin: Origin) -> [String] {
        ([origin.settings.baseURL] + origin.settings.mirrors).compactMap { base in
            guard let base = try? resolver.upstream.parse(url: base), base.isSameHost(as: url),
                let path = PercentEncoding.normalized(path: url.path),
                var top = PercentEncoding.normalized(path: base.path)
            else { return nil }
            if !top.hasSuffix("/") { top += "/" }
            guard path.hasPrefix(top) else { return nil }
            return try? AssetKey.mounted(
                origin: origin, path: String(path.dropFirst(top.count)), query: url.query, digest: AssetResolver.digest
            ).text
        }
    }

    /// The URL without its query as it may have been written: as given, in normal form, decoded, and with lower-case digits.
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

    private static func lowered(_ path: String) -> String {
        var (text, digits): ([UInt8], Int) = ([], 0)
        for byte in path.utf8 {
            text.append(digits > 0 && (UInt8(ascii: "A")...UInt8(ascii: "F")).contains(byte) ? byte | 0x20 : byte)
            digits = byte == UInt8(ascii: "%") ? 2 : max(0, digits - 1)
        }
        return String(decoding: text, as: UTF8.self)
    }
}
