package import CacheCore

/// Files outside the store, such as an origin's fallback file.
extension Store {
    /// Opens a file that is not part of the store, at `path` below `directory`, read-only. No `..` and no link can lead
    /// out of the directory. Blocks. Throws `notFound` if there is no regular file.
    package func openForeign(_ path: String, below directory: String) throws(CacheError) -> SparseFile {
        let descriptor = try descriptors.open { () throws(CacheError) in try disk.openBelow(directory, path) }
        let file = SparseFile(name: nil, path: nil, descriptor: descriptor, disk: disk, descriptors: descriptors)
        guard try file.status().isRegular else { throw CacheError(.notFound, "\(path) is not a regular file.") }
        return file
    }

    /// Reads a small foreign file completely. Throws as `openForeign`, and `payloadTooLarge` if it has more than
    /// `limit` bytes.
    package func readForeign(
        _ path: String, below directory: String, limit: Int
    ) throws(CacheError) -> [UInt8] {
        let file = try openForeign(path, below: directory)
        let bytes = try file.withDescriptor { descriptor throws(CacheError) in
            try disk.readAll(descriptor, limit: limit + 1)
        }
        guard bytes.count <= limit else {
            throw CacheError(.payloadTooLarge, "\(path) is too large: the maximum is \(limit) bytes.")
        }
        return bytes
    }
}
