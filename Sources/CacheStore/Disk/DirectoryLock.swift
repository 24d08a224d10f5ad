import CacheCore
import Glibc

/// Exclusive lock (flock(2)) on a store's directory, held until `release` or the end of the process.
final class DirectoryLock: Sendable {
    /// The locked file, guarded by the mutex; nil after the release.
    private let descriptor: OrderedMutex<Descriptor?>
    private let disk: any Disk

    /// Acquires the lock and writes the process identifier into the lock file. Throws `conflict`, with the holder's
    /// name, if another process holds the lock.
    init(_ layout: StoreLayout, disk: any Disk, now: Timestamp) throws(CacheError) {
        let descriptor = try disk.open(layout.lock, .openOrCreate)
        do throws(CacheError) {
            guard try disk.lock(descriptor, isShared: false) else {
                throw CacheError(
                    .conflict,
                    "The data directory \(layout.directory) is in use by \(Self.holder(descriptor, disk)). Stop it,"
                        + " or choose another directory.")
            }
            // Overwrites the line in place with a fixed length: this needs no disk space, even on a full disk.
            let holder = "process \(getpid()) since \(RFC3339.format(now))"
            let padding = String(repeating: " ", count: max(0, Self.lineLength - 1 - holder.utf8.count))
            try disk.writeAll(descriptor, Array((holder + padding + "\n").utf8))
        } catch {
            disk.close(descriptor)
            throw error
        }
        self.descriptor = OrderedMutex(.leaf, descriptor)
        self.disk = disk
    }

    deinit { release() }

    /// Releases the lock. Further calls have no effect.
    func release() {
        let held = descriptor.withLock { descriptor in
            defer { descriptor = nil }
            return descriptor
        }
        if let held { disk.close(held) }
    }

    /// The process that holds the lock, as in `process 12 since 2026-01-01T00:00:00Z`; nil: none. Holds a free lock for a
    /// moment.
    static func holder(in layout: StoreLayout, disk: any Disk) throws(CacheError) -> String? {
        guard try disk.status(of: layout.lock) != nil else { return nil }
        let descriptor = try disk.open(layout.lock, .readOnly)
        defer { disk.close(descriptor) }
        return try disk.lock(descriptor, isShared: false) ? nil : holder(descriptor, disk)
    }

    /// Description of the process that holds the lock, from the lock file.
    private static func holder(_ descriptor: Descriptor, _ disk: any Disk) -> String {
        // An unreadable line does not change the fact that the lock is held.
        let line = (try? disk.readAll(descriptor, limit: Self.lineLength)) ?? []
        let words = String(decoding: line, as: UTF8.self).split { $0 == " " || $0 == "\n" }
        return words.first == "process" ? words.joined(separator: " ") : "another process"
    }

    /// Fixed length of the line in the lock file, in bytes.
    private static let lineLength = 64
}
