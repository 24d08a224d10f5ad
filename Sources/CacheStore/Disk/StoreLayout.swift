/// Where things lie in a store's directory.
package struct StoreLayout: Hashable, Sendable {
    package let directory: String

    package init(directory: String) {
        var path = Substring(directory)
        while path.count > 1, path.last == "/" { path = path.dropLast() }
        self.directory = String(path)
    }

    /// What the directory lies in.
    var parent: String {
        guard let slash = directory.lastIndex(of: "/") else { return "." }
        return slash == directory.startIndex ? "/" : String(directory[..<slash])
    }

    package var lock: String { directory + "/larder.lock" }
    package var catalog: String { directory + "/catalog.sqlite" }
    package var secretKey: String { directory + "/secret.key" }
    /// What the key is written to before it has its name.
    var secretKeyDraft: String { secretKey + ".new" }
    package var reserve: String { directory + "/reserve" }
    package var assets: String { directory + "/assets" }

    /// The 256 directories that files are spread over, each named by two hexadecimal digits.
    package static let shards: [String] = (0..<256).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }

    /// The directory of that name.
    package func shard(_ name: String) -> String { assets + "/" + name }

    /// Where a file lies.
    package func path(of file: FileName) -> String { shard(file.shard) + "/" + file.description }
}
