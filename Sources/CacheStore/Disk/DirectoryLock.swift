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
    init(_ layout: StoreLayout, disk: any Disk, now: Timestamp) throws(CacheError) {
        let descriptor = try disk.open(layout.lock, .openOrCreate)
        do throws(CacheError) {
            guard try disk.lock(descriptor) else {
                throw CacheError(
                    .conflict,
                    "The data directory \(layout.directory) is in use by \(Self.holder(descriptor, disk)). Stop it,"
                        + " or choose another directory.")
            }
            // In place, always as long: on a full disk too.
            let holder = "process \(getpid()) since \(RFC3339.format(now))"
            let padding = String(repeating: " ", count: max(0, Self.lineLength - 1 - holder.utf8.count))
            try disk.writeAll(descriptor, Array((holder + padding + "\n").utf8))
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
        let line = (try? disk.readAll(descriptor, limit: Self.lineLength)) ?? []
        let words = String(decoding: line, as: UTF8.self).split { $0 == " " || $0 == "\n" }
        return words.first == "process" ? words.joined(separator: " ") : "another process"
    }

    private static let lineLength = 64
}
