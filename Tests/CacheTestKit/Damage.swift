package import CacheCore
import CacheStore

/// Flips a bit of one byte of a file, behind the back of those who keep its sums.
package func damage(_ path: String, at offset: Int64) throws(CacheError) {
    let disk = SystemDisk()
    let descriptor = try disk.open(path, .readWrite)
    defer { disk.close(descriptor) }
    var byte: UInt8 = 0
    let outcome: CacheError? = withUnsafeMutableBytes(of: &byte) { buffer in
        do throws(CacheError) {
            _ = try disk.read(descriptor, into: buffer, at: offset)
            buffer[0] ^= 4
            _ = try disk.write(descriptor, UnsafeRawBufferPointer(buffer), at: offset)
            return nil
        } catch {
            return error
        }
    }
    if let outcome { throw outcome }
}

extension TemporaryDirectory {
    /// The files of assets in a store that lies here.
    package func assetFiles(_ store: String = "") throws(CacheError) -> [String] {
        let layout = StoreLayout(directory: store.isEmpty ? path : path(store))
        var files: [String] = []
        for shard in StoreLayout.shards {
            for name in try SystemDisk().list(layout.shard(shard)) { files.append(layout.shard(shard) + "/" + name) }
        }
        return files
    }
}
