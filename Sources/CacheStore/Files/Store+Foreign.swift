package import CacheCore

extension Store {
    /// A file that is not the store's: the one at `path` below `directory`, for reading only; nothing leads out of there,
    /// no `..` and no link. Blocks. Throws `.notFound` where there is no such file, or none with bytes of its own.
    package func openForeign(_ path: String, below directory: String) throws(CacheError) -> SparseFile {
        let descriptor = try shelf.open { () throws(CacheError) in try disk.openBelow(directory, path) }
        let file = SparseFile(name: nil, path: nil, descriptor: descriptor, disk: disk, shelf: shelf)
        guard try file.status().isRegular else { throw CacheError(.notFound, "\(path) is not a file.") }
        return file
    }

    /// All of a small file that is not the store's; as `openForeign`, and `.payloadTooLarge` beyond `limit` bytes.
    package func readForeign(
        _ path: String, below directory: String, limit: Int
    ) throws(CacheError) -> [UInt8] {
        let file = try openForeign(path, below: directory)
        let bytes = try file.withDescriptor { descriptor throws(CacheError) in
            try disk.readAll(descriptor, limit: limit + 1)
        }
        guard bytes.count <= limit else {
            throw CacheError(.payloadTooLarge, "\(path) has more than \(limit) bytes.")
        }
        return bytes
    }
}
