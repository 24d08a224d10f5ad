import CacheStore
import Foundation

extension DiskImage.Tree {
    /// Writes the tree as real files and directories below `root`, an existing directory.
    package func write(to root: String) throws {
        let disk = SystemDisk()
        for name in directories.sorted() { _ = try disk.createDirectory(root + "/" + name) }
        for (name, bytes) in files {
            let descriptor = try disk.open(root + "/" + name, .create)
            defer { disk.close(descriptor) }
            var written = 0
            while written < bytes.count {
                written += try bytes.withUnsafeBytes { buffer in
                    let rest = UnsafeRawBufferPointer(rebasing: buffer[written...])
                    return try Result { try disk.write(descriptor, rest, at: Int64(written)) }.get()
                }
            }
        }
    }
}
