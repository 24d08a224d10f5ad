package import CacheCore
import Foundation

/// The items of large jobs until the catalog has them: one file for each job, in the directory `spool` of the store.
///
/// A file is a sequence of blocks, each with its length in 4 bytes, sealed as the references of items in the catalog.
/// A block has lines of JSON: the first line of the file has the tags and the pin of all items, each other line an item.
package final class JobSpools: Sendable {
    /// The largest size of all files together, and of one.
    package static let mostBytes: Int64 = 256 << 20
    package static let mostBytesOfJob: Int64 = 64 << 20
    /// The extension of a file, after the identifier of its job.
    private static let suffix = ".items"

    private let layout: StoreLayout
    private let disk: any Disk
    private let secrets: SecretBox
    private let limits: (total: Int64, ofJob: Int64)
    /// Guards the sizes of the files by job, also of those that grow at present.
    private let sizes = OrderedMutex<[String: Int64]>(.leaf, [:])

    init(
        layout: StoreLayout, disk: any Disk, secrets: SecretBox,
        limits: (total: Int64, ofJob: Int64) = (mostBytes, mostBytesOfJob)
    ) {
        (self.layout, self.disk, self.secrets, self.limits) = (layout, disk, secrets, limits)
    }

    private func path(of job: String) -> String { layout.spool + "/" + job + Self.suffix }

    /// Whether the job has a file.
    package func contains(_ job: String) -> Bool { sizes.withLock { $0[job] != nil } }

    /// Begins the file of a new job. Blocks, as all functions that use the disk.
    package func create(_ job: String) throws(CacheError) -> JobSpool {
        _ = try disk.createDirectory(layout.spool)
        let descriptor = try disk.open(path(of: job), .create)
        sizes.withLock { $0[job] = 0 }
        return JobSpool(job: job, spools: self, disk: disk, descriptor: descriptor)
    }

    /// Adds to the size of a file. Throws `.overloaded` if all files would be too large, `.payloadTooLarge` if this one would.
    fileprivate func grow(_ job: String, by bytes: Int64) throws(CacheError) {
        let isTooLarge = sizes.withLock { sizes -> Bool? in
            let size = sizes[job, default: 0] + bytes
            guard size <= limits.ofJob else { return true }
            guard sizes.values.reduce(bytes, +) <= limits.total else { return false }
            sizes[job] = size
            return nil
        }
        switch isTooLarge {
        case nil: return
        case true?:
            throw CacheError(.payloadTooLarge, "The items of the job have more than \(limits.ofJob >> 20) MiB.")
        case false?:
            throw CacheError(
                .overloaded,
                "The items of large jobs hold \(limits.total >> 20) MiB of the data directory: repeat later.")
        }
    }

    fileprivate func seal(_ text: String) throws(CacheError) -> Data { try secrets.seal(text) }

    /// The end of the directory entry is on the device.
    fileprivate func syncDirectory() throws(CacheError) { try disk.syncDirectory(layout.spool) }

    /// Removes the file of a job, if there is one.
    package func remove(_ job: String) throws(CacheError) {
        guard contains(job) else { return }
        try disk.unlink(path(of: job))
        sizes.withLock { $0[job] = nil }
    }

    /// Removes the files of an earlier process, except for those of the named jobs.
    package func removeAll(except jobs: Set<String>) throws(CacheError) {
        guard try disk.status(of: layout.spool) != nil else { return }
        for name in try disk.list(layout.spool) where name.hasSuffix(Self.suffix) {
            let job = String(name.dropLast(Self.suffix.count))
            guard !contains(job) else { continue }  // it grows at present
            let path = path(of: job)
            guard jobs.contains(job) else {
                try disk.unlink(path)
                continue
            }
            let size = try disk.status(of: path)?.size ?? 0
            sizes.withLock { $0[job] = size }
        }
    }

    /// The items of a job from a position on. Throws `.storageCorrupt` if the file is damaged or missing.
    package func items(of job: String, from first: Int) throws(CacheError) -> [JobItemRecord] {
        guard try disk.status(of: path(of: job)) != nil else {
            throw CacheError(.storageCorrupt, "The spool file of the job \(job) is missing.")
        }
        let descriptor = try disk.open(path(of: job), .readOnly)
        defer { disk.close(descriptor) }
        var (items, offset, index): ([JobItemRecord], Int64, Int) = ([], 0, 0)
        var common: JobSpool.Common?
        while let length = try read(descriptor, 4, at: offset) {
            let count = length.reversed().reduce(0) { $0 << 8 | Int($1) }
            guard count <= Self.mostBytesOfJob, let block = try read(descriptor, count, at: offset + 4) else { break }
            offset += 4 + Int64(count)
            for line in try secrets.open(Data(block)).split(separator: "\n") {
                guard let common else {
                    common = try RowCoding.value(json: String(line))
                    continue
                }
                defer { index += 1 }
                guard index >= first else { continue }
                var item = try StoredJobItem.item(JSONParser.parse(line.utf8), index: index)
                common.apply(to: &item)
                if let last = items.last { item.share(with: last) }
                items.append(item)
            }
        }
        return items
    }

    /// Nil at the end of the file.
    private func read(_ descriptor: Descriptor, _ count: Int, at offset: Int64) throws(CacheError) -> [UInt8]? {
        var (bytes, filled) = ([UInt8](repeating: 0, count: count), 0)
        while filled < count {
            let outcome: Result<Int, CacheError> = bytes.withUnsafeMutableBytes { buffer in
                do throws(CacheError) {
                    let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[filled...])
                    return .success(try disk.read(descriptor, into: rest, at: offset + Int64(filled)))
                } catch {
                    return .failure(error)
                }
            }
            let part = try outcome.get()
            guard part > 0 else { return nil }
            filled += part
        }
        return bytes
    }
}

/// The spool file of a job while its items arrive. Its functions block.
package struct JobSpool: Sendable {
    /// The values that all items of a request have in common.
    fileprivate struct Common: Codable {
        var tags: [String]
        var pinned: Bool

        func apply(to item: inout JobItemRecord) { (item.tags, item.isPinned) = (tags, pinned) }
    }

    package let job: String
    private let spools: JobSpools
    private let disk: any Disk
    private let descriptor: Descriptor
    private var size: Int64 = 0
    /// The lines that are not written yet.
    private var block = ""
    private var isBegun = false
    private var isClosed = false

    /// The length from which a block is written.
    private static let blockBytes = 64 << 10

    fileprivate init(job: String, spools: JobSpools, disk: any Disk, descriptor: Descriptor) {
        (self.job, self.spools, self.disk, self.descriptor) = (job, spools, disk, descriptor)
    }

    /// Adds items. Throws `.overloaded`, `.payloadTooLarge` and the errors of the disk.
    package mutating func append(_ items: some Sequence<JobItemRecord>) throws(CacheError) {
        for item in items {
            if !isBegun {
                do {
                    block = try RowCoding.json(Common(tags: item.tags, pinned: item.isPinned))
                } catch {
                    throw CacheError(.internal, "The tags of a job cannot be encoded.", cause: error)
                }
                isBegun = true
            }
            block += "\n"
            block += try StoredJobItem.line(of: item)
            if block.utf8.count >= Self.blockBytes { try writeBlock() }
        }
    }

    /// Returns when all items are on the device.
    package mutating func finish() throws(CacheError) {
        if !block.isEmpty { try writeBlock() }
        try disk.sync(descriptor)
        try spools.syncDirectory()
        disk.close(descriptor)
        isClosed = true
    }

    /// Closes and removes the file.
    package func discard() throws(CacheError) {
        if !isClosed { disk.close(descriptor) }
        try spools.remove(job)
    }

    private mutating func writeBlock() throws(CacheError) {
        let sealed = try spools.seal(block)
        block = ""
        let bytes = (0..<4).map { UInt8(truncatingIfNeeded: sealed.count >> (8 * $0)) } + sealed
        try spools.grow(job, by: Int64(bytes.count))
        var written = 0
        while written < bytes.count {
            let outcome: Result<Int, CacheError> = bytes.withUnsafeBytes { buffer in
                do throws(CacheError) {
                    let rest = UnsafeRawBufferPointer(rebasing: buffer[written...])
                    return .success(try disk.write(descriptor, rest, at: size + Int64(written)))
                } catch {
                    return .failure(error)
                }
            }
            written += try outcome.get()
        }
        size += Int64(bytes.count)
    }
}
