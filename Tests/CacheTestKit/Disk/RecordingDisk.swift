package import CacheCore
package import CacheStore
import Synchronization

/// Disk that forwards calls to a base disk and records changes in a log. Syncs are recorded only, not forwarded.
package final class RecordingDisk: Disk {
    private let base: any Disk
    private let log: DiskLog
    private let files = Mutex<[Int32: Int]>([:])

    package init(_ log: DiskLog, base: any Disk = SystemDisk()) {
        self.log = log
        self.base = base
    }

    package func open(_ path: String, _ access: FileAccess) throws(CacheError) -> Descriptor {
        let descriptor = try base.open(path, access)
        let file = log.opened(path)
        files.withLock { $0[descriptor.number] = file }
        return descriptor
    }

    package func openBelow(_ directory: String, _ path: String) throws(CacheError) -> Descriptor {
        try base.openBelow(directory, path)
    }

    package func close(_ descriptor: Descriptor) {
        files.withLock { $0[descriptor.number] = nil }
        base.close(descriptor)
    }

    package func read(
        _ descriptor: Descriptor, into bytes: UnsafeMutableRawBufferPointer, at offset: Int64
    ) throws(CacheError) -> Int {
        try base.read(descriptor, into: bytes, at: offset)
    }

    package func readFromPageCache(
        _ descriptor: Descriptor, into bytes: UnsafeMutableRawBufferPointer, at offset: Int64
    ) -> Int? {
        base.readFromPageCache(descriptor, into: bytes, at: offset)
    }

    package func tellsReferences(in directory: String) -> Bool { base.tellsReferences(in: directory) }

    package func holes(in directory: String) throws(CacheError) -> HoleSupport { try base.holes(in: directory) }

    package func isCached(_ descriptor: Descriptor, _ range: ByteRange) -> Bool { base.isCached(descriptor, range) }

    package func drops(_ descriptor: Descriptor, _ range: ByteRange, of block: ByteRange) -> Bool {
        base.drops(descriptor, range, of: block)
    }

    package func write(
        _ descriptor: Descriptor, _ bytes: UnsafeRawBufferPointer, at offset: Int64
    ) throws(CacheError) -> Int {
        let count = try base.write(descriptor, bytes, at: offset)
        note(descriptor) { .write(file: $0, offset: Int(offset), bytes: Array(bytes.prefix(count))) }
        return count
    }

    package func punch(_ descriptor: Descriptor, _ range: ByteRange) throws(CacheError) {
        try base.punch(descriptor, range)
        note(descriptor) { .punch(file: $0, range: range) }
    }

    package func truncate(_ descriptor: Descriptor, to size: Int64) throws(CacheError) {
        try base.truncate(descriptor, to: size)
        note(descriptor) { .truncate(file: $0, size: Int(size)) }
    }

    package func sync(_ descriptor: Descriptor) throws(CacheError) {
        note(descriptor) { .sync(file: $0) }
    }

    package func status(_ descriptor: Descriptor) throws(CacheError) -> FileStatus { try base.status(descriptor) }

    package func status(of path: String) throws(CacheError) -> FileStatus? { try base.status(of: path) }

    package func list(_ directory: String) throws(CacheError) -> [String] { try base.list(directory) }
    package func directories(in directory: String, named names: Set<String>) throws(CacheError) -> Set<String> {
        try base.directories(in: directory, named: names)
    }

    package func createDirectory(_ path: String) throws(CacheError) -> Bool {
        let isNew = try base.createDirectory(path)
        if isNew { log.createdDirectory(path) }
        return isNew
    }

    package func syncDirectory(_ path: String) throws(CacheError) { log.syncedDirectory(path) }

    package func rename(_ path: String, to newPath: String) throws(CacheError) {
        try base.rename(path, to: newPath)
        log.renamed(path, to: newPath)
    }

    package func unlink(_ path: String) throws(CacheError) {
        try base.unlink(path)
        log.unlinked(path)
    }

    package func lock(_ descriptor: Descriptor, isShared: Bool) throws(CacheError) -> Bool {
        try base.lock(descriptor, isShared: isShared)
    }

    package func freeBytes(at path: String) throws(CacheError) -> Int64 { try base.freeBytes(at: path) }

    private func note(_ descriptor: Descriptor, _ operation: (Int) -> DiskLog.Operation) {
        if let file = files.withLock({ $0[descriptor.number] }) { log.note(operation(file)) }
    }
}
