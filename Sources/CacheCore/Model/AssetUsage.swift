/// The grouping of the usage of the cache.
package enum UsageGroup: String, Sendable, CaseIterable {
    case origin
    /// Directories of keys.
    case path
    /// An asset with several tags is counted with each of them.
    case tag
    /// Media types without parameters; empty for assets without one.
    case type
    /// The time since the asset was first fetched.
    case age
}

/// A request for the usage of the cache by groups.
package struct UsageQuery: Hashable, Sendable {
    package var group: UsageGroup
    /// The directory whose directories are listed, as `/o/media/films/`; nil: all. For ``UsageGroup/path`` only.
    package var prefix: String?
    /// The number of levels of directories below the prefix: 1 lists its own directories.
    package var depth: Int
    package var limit: Int

    package init(group: UsageGroup, prefix: String? = nil, depth: Int = 1, limit: Int = 100) {
        self.group = group
        self.prefix = prefix
        self.depth = depth
        self.limit = limit
    }

    /// The level of the listed directories: 0 for mounts. Throws `.invalidField` for a prefix that is no directory, and for
    /// levels below ``UsageName/deepest``.
    package func level() throws(CacheError) -> Int {
        var level = depth - 1
        if let prefix {
            guard let own = UsageName.directories(of: prefix).last(where: { $0.name == prefix }) else {
                throw .invalid(
                    "prefix",
                    "A directory of keys such as /o/media/films/ is expected here, at most \(UsageName.deepest) levels below its origin."
                )
            }
            level = own.level + depth
        }
        guard level <= UsageName.deepest else {
            throw .invalid("depth", "Directories are counted to \(UsageName.deepest) levels below their origin.")
        }
        return level
    }
}

/// The usage of the cache by groups.
package struct AssetUsage: Hashable, Sendable {
    /// Assets and their cached bytes.
    package struct Amount: Hashable, Sendable {
        package var assets: Int64
        package var bytes: Int64

        package init(assets: Int64 = 0, bytes: Int64 = 0) {
            self.assets = assets
            self.bytes = bytes
        }
    }

    package struct Part: Hashable, Sendable {
        package var name: String
        package var amount: Amount

        package init(name: String, amount: Amount) {
            self.name = name
            self.amount = amount
        }
    }

    /// The groups with most bytes first.
    package var parts: [Part]
    /// All assets of the request, also those of groups that are not listed.
    package var total: Amount

    package init(parts: [Part], total: Amount) {
        self.parts = parts
        self.total = total
    }
}

/// A group that an asset is counted in.
package struct UsageName: Hashable, Sendable {
    /// The deepest level of directories that are counted.
    package static let deepest = 7
    /// The longest name of a counted directory in bytes.
    private static let mostBytes = 1024
    /// The upper bounds of the ages of ``UsageGroup/age``, with their names.
    package static let ages: [(name: String, hours: Int64)] = [
        ("1h", 1), ("1d", 24), ("7d", 168), ("30d", 720), ("365d", 8760), ("older", .max),
    ]

    package var group: UsageGroup
    /// The level of a directory; 0 for other groups.
    package var level: Int
    package var name: String

    package init(_ group: UsageGroup, _ name: String, level: Int = 0) {
        self.group = group
        self.level = level
        self.name = name
    }

    /// The groups of an asset. The age is the hour of its creation since 1970.
    package static func names(
        key: String, origin: String, tags: [String], contentType: String?, createdAt: Timestamp
    ) -> [UsageName] {
        // Texts are compared as bytes: a set of them would take equivalent ones for one.
        let tags = Set(tags.map { Array($0.utf8) }).map { UsageName(.tag, String(decoding: $0, as: UTF8.self)) }
        return [UsageName(.origin, origin)] + directories(of: key) + tags + [
            UsageName(.type, contentType.map { MediaType.essence($0) } ?? ""),
            UsageName(.age, String(createdAt.milliseconds / 3_600_000)),
        ]
    }

    /// The directories of a key, from its mount or host on. A key that a client has chosen has none.
    package static func directories(of key: String) -> [UsageName] {
        let path = Array(key.utf8.prefix { $0 != UInt8(ascii: "?") })
        var begin = 0
        if path.starts(with: "/o/".utf8) {
            begin = 3
        } else if let mark = path.indices.first(where: { path[$0...].starts(with: "://".utf8) }) {
            begin = mark + 3
        } else {
            return []
        }
        let slashes = path.indices.dropFirst(begin).filter { path[$0] == UInt8(ascii: "/") }
        return slashes.prefix(deepest + 1).enumerated().filter { $0.element < mostBytes }.map { level, slash in
            UsageName(.path, String(decoding: path[...slash], as: UTF8.self), level: level)
        }
    }
}
