import CacheCore
import CacheStore

/// Finds out why a purge selects no asset: another spelling of a prefix or key, an unknown origin, an unknown host.
struct PurgeHint: Sendable {
    let resolver: AssetResolver
    /// The token of the request. The hint shows nothing outside its limits.
    let owner: TokenOwner?

    /// The longest name in a hint.
    private static let shownCharacters = 200
    /// The largest number of keys that are compared without regard to the case of letters.
    private static let mostKeys = 5000

    /// A sentence or two for the client; nil: the conditions contradict each other, or nothing is known.
    func text(for request: PurgeRequest) async throws(CacheError) -> String? {
        let names = resolver.origins.all.map(\.origin.name).filter { name in
            owner.map { !$0.limits.isLimited || $0.limits.mayPermit(origin: name) } ?? true
        }
        if let origin = request.origin, !names.contains(origin) {
            let near = EditDistance.nearest(to: origin, among: names)
            return "No origin is named \(shown(origin))." + (near.map { " The name \($0) is similar." } ?? "")
        }
        if let url = request.urls?.first { return try await hint(url: url, names) }
        let literal = request.patterns?.first?.prefix
        if let prefix = request.prefix ?? request.keys?.first ?? literal, !prefix.isEmpty {
            return try await hint(prefix: prefix, of: request.origin, names)
        }
        guard let origin = request.origin, owner?.limits.isLimited != true else { return nil }
        return try await exists("/o/\(origin)/") ? nil : "The origin \(origin) has no assets in the cache."
    }

    // MARK: Prefixes

    private func hint(prefix: String, of origin: String?, _ names: [String]) async throws(CacheError) -> String? {
        if try await exists(prefix) {
            return "Assets have keys that begin with \(shown(prefix)), but none of them meets all conditions."
        }
        let candidates = Self.spellings(of: prefix, origin: origin, names)
        for candidate in candidates where try await exists(candidate) {
            return "No key begins with \(shown(prefix)). Keys begin with \(shown(candidate))."
        }
        // The longest existing folder of the most probable spelling.
        let isKey = prefix.hasPrefix("/o/") && names.contains(String(prefix.dropFirst(3).prefix { $0 != "/" }))
        let likely = isKey ? prefix : candidates.first { $0.hasPrefix("/o/") } ?? prefix
        guard likely.hasPrefix("/o/") else {
            return "No key begins with \(shown(prefix)). Keys of mounted assets begin with /o/{origin}/."
        }
        guard let folder = try await folder(of: likely) else {
            if let owner, owner.limits.isLimited {
                return "No key inside the limits of the token begins with \(shown(prefix))."
            }
            let name = String(likely.dropFirst(3).prefix { $0 != "/" })
            return names.contains(name)
                ? "The origin \(name) has no assets in the cache." : "No origin is named \(shown(name))."
        }
        if let other = try await otherCase(of: likely, below: folder) {
            return "No key begins with \(shown(prefix)). Keys begin with \(shown(other))."
        }
        return "No key begins with \(shown(prefix)). The longest part of it with assets is \(shown(folder))."
    }

    /// Other spellings of a prefix, the most probable first.
    static func spellings(of prefix: String, origin: String?, _ names: [String]) -> [String] {
        var path = prefix
        // The URL of a reader: only its path can begin a key.
        if let host = path.firstRange(of: "://") { path = String(path[host.upperBound...].drop { $0 != "/" }) }
        // A pattern as prefix.
        path = String(path.prefix { $0 != "*" })
        if !path.hasPrefix("/") { path = "/" + path }
        while path.contains("//") { path = path.replacing("//", with: "/") }
        let first = String(path.dropFirst().prefix { $0 != "/" })
        var found: [String] = []
        if path.hasPrefix("/o/") {
            found.append(path)
            let name = String(path.dropFirst(3).prefix { $0 != "/" })
            if !names.contains(name), let near = EditDistance.nearest(to: name, among: names) {
                found.append("/o/" + near + path.dropFirst(3 + name.count))
            }
        } else if names.contains(first) {
            found.append("/o" + path)
        } else if let near = EditDistance.nearest(to: first, among: names, limit: 1) {
            found.append("/o/" + near + path.dropFirst(1 + first.count))
        }
        for name in origin.map({ [$0] }) ?? Array(names.prefix(8)) { found.append("/o/" + name + path) }
        // In the encoding of keys; also of a prefix that was encoded twice, or whose `%` was not.
        let encoded = found.flatMap { path in
            let normal = PercentEncoding.normalized(path: path)
            let decoded = String(validating: PercentEncoding.decoded(path), as: UTF8.self)
            return [
                path, normal, normal == path ? decoded.flatMap { PercentEncoding.normalized(path: $0) } : nil,
                normal == nil ? PercentEncoding.encoded(name: path) : nil,
            ].compactMap(\.self)
        }
        var seen: Set = [prefix]
        return encoded.filter { seen.insert($0).inserted }
    }

    /// The longest folder of the prefix with an asset.
    private func folder(of prefix: String) async throws(CacheError) -> String? {
        var rest = prefix[...]
        while let slash = rest.lastIndex(of: "/") {
            let folder = String(prefix[...slash])
            guard folder.count > "/o/".count else { return nil }
            if try await exists(folder) { return folder }
            rest = prefix[..<slash]
        }
        return nil
    }

    /// The beginning of a key below the folder that differs from the prefix in the case of letters only.
    private func otherCase(of prefix: String, below folder: String) async throws(CacheError) -> String? {
        var query = AssetQuery(prefix: folder, sort: .key, isDescending: false, limit: 1000)
        let (wanted, length) = (prefix.lowercased(), prefix.count)
        for _ in 0..<(Self.mostKeys / 1000) {
            let page = try await resolver.catalog.assetPage(query)
            for item in page.items where item.record.key.lowercased().hasPrefix(wanted) {
                let found = String(item.record.key.prefix(length))
                if permits(found) { return found }
            }
            guard let next = page.nextCursor else { return nil }
            query.cursor = next
        }
        return nil
    }

    /// Whether an asset that the token may know has a key with this prefix.
    private func exists(_ prefix: String) async throws(CacheError) -> Bool {
        guard permits(prefix) else { return false }
        return try await !resolver.catalog.assetPage(AssetQuery(prefix: prefix, sort: .key, limit: 1)).items.isEmpty
    }

    private func permits(_ prefix: String) -> Bool {
        owner.map { !$0.limits.isLimited || $0.limits.permits(allBelow: prefix) } ?? true
    }

    // MARK: URLs

    private func hint(url text: String, _ names: [String]) async throws(CacheError) -> String? {
        guard let url = try? resolver.upstream.parse(url: text) else { return nil }
        let places = resolver.mountedURLs.places(of: url).filter { names.contains($0.origin.name) }
        if let place = places.first {
            let key = "/o/\(place.origin.name)/\(place.path)"
            return try await hint(prefix: key, of: nil, names)
        }
        var hosts: [String: String] = [:]
        for entry in resolver.origins.all where names.contains(entry.origin.name) {
            for base in [entry.origin.settings.baseURL] + entry.origin.settings.mirrors {
                guard let base = try? resolver.upstream.parse(url: base) else { continue }
                let address = "\(base.scheme.rawValue)://\(base.hostField)"
                if hosts[address] == nil { hosts[address] = "\(entry.origin.name): \(base.redacted)" }
            }
        }
        let address = "\(url.scheme.rawValue)://\(url.hostField)"
        let similar = EditDistance.nearest(to: address, among: hosts.keys.sorted(), limit: 8)
        let near = hosts[address] ?? similar.flatMap { hosts[$0] }
        return "No asset was fetched from this URL, and no origin has a base URL that contains it."
            + (near.map { " The most similar base URL is that of \(shown($0))." } ?? "")
    }

    private func shown(_ name: String) -> String {
        name.count > Self.shownCharacters ? name.prefix(Self.shownCharacters) + "…" : name
    }
}
