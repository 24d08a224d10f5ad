import CacheCore
import Glibc
import Synchronization

/// The right to be the only user of a store's directory, until it is released or the process ends.
final class DirectoryLock: Sendable {
    /// Nil once it is released.
    private let descriptor: Mutex<Descriptor?>
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
        self.descriptor = Mutex(descriptor)
        self.disk = disk
    }

    deinit { release() }

    func release() {
        let held = descriptor.withLock { descriptor in
            defer { descriptor = nil }
            return descriptor
        }
        if let held { disk.close(held) }
    }

    private static func holder(_ descriptor: Descriptor, _ disk: any Disk) -> String {
        // A holder that cannot be read is still a holder.
        let text = (try? disk.readAll(descriptor, limit: 32)) ?? []
        let number = String(decoding: text.prefix { $0 != 10 }, as: UTF8.self)
        return Int(number).map { "process \($0)" } ?? "another process"
    }
}
