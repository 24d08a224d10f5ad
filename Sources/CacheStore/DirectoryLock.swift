import CacheCore
import Glibc

/// The right to be the only process that uses a store's directory; it ends with this object, or with the process.
final class DirectoryLock: Sendable {
    private let descriptor: Descriptor
    private let disk: any Disk

    /// Takes the lock and writes this process's number into the file; throws `conflict`, naming the holder, where
    /// another process has it.
    init(_ layout: StoreLayout, disk: any Disk) throws(CacheError) {
        let descriptor = try disk.open(layout.lock, .openOrCreate)
        do throws(CacheError) {
            guard try disk.lock(descriptor) else {
                throw CacheError(
                    .conflict,
                    "The data directory \(layout.directory) is in use by \(Self.holder(descriptor, disk)). Stop it,"
                        + " or choose another directory.")
            }
            try disk.truncate(descriptor, to: 0)
            try disk.writeAll(descriptor, Array("\(getpid())\n".utf8))
        } catch {
            disk.close(descriptor)
            throw error
        }
        self.descriptor = descriptor
        self.disk = disk
    }

    deinit { disk.close(descriptor) }

    private static func holder(_ descriptor: Descriptor, _ disk: any Disk) -> String {
        // A holder that cannot be read is still a holder.
        let text = (try? disk.readAll(descriptor, limit: 32)) ?? []
        let number = String(decoding: text.prefix { $0 != 10 }, as: UTF8.self)
        return Int(number).map { "process \($0)" } ?? "another process"
    }
}
