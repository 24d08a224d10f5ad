import CLinux
package import CacheCore
import Glibc

/// The disk of the operating system.
package struct SystemDisk: Disk {
    package init() {}

    package func open(_ path: String, _ access: FileAccess) throws(CacheError) -> Descriptor {
        let mode =
            switch access {
            case .readOnly: LARDER_OPEN_READ_ONLY
            case .readWrite: LARDER_OPEN_READ_WRITE
            case .create: LARDER_OPEN_CREATE
            case .openOrCreate: LARDER_OPEN_OR_CREATE
            }
        let number = try call("Opening a file", path) { larder_open(path, mode) }
        return Descriptor(number: number)
    }

    package func openBelow(_ directory: String, _ path: String) throws(CacheError) -> Descriptor {
        do throws(CacheError) {
            return Descriptor(number: try call("Opening a file", path) { larder_open_below(directory, path) })
        } catch {
            switch (error.cause as? SystemCallError)?.number {
            // No such file, or the path leads out of the directory.
            case ENOENT, ENOTDIR, EXDEV, ELOOP: break
            case ENOSYS: return try openResolved(directory, path)
            default: throw error
            }
            throw CacheError(.notFound, "There is no file \(path) below \(directory).", cause: error)
        }
    }

    /// As `openBelow`, for kernels and emulations without openat2(2). Links are resolved first, so a link that is
    /// changed meanwhile is not detected.
    private func openResolved(_ directory: String, _ path: String) throws(CacheError) -> Descriptor {
        guard let root = resolved(directory), let file = resolved(directory + "/" + path), file.hasPrefix(root + "/")
        else {
            throw CacheError(.notFound, "There is no file \(path) below \(directory).")
        }
        return try open(file, .readOnly)
    }

    /// The absolute path without links; nil if it does not exist.
    private func resolved(_ path: String) -> String? {
        guard let found = realpath(path, nil) else { return nil }
        defer { free(found) }
        return String(cString: found)
    }

    package func close(_ descriptor: Descriptor) {
        // Linux frees the descriptor whatever close(2) returns, and important writes were synced before.
        _ = Glibc.close(descriptor.number)
    }

    package func read(
        _ descriptor: Descriptor, into bytes: UnsafeMutableRawBufferPointer, at offset: Int64
    ) throws(CacheError) -> Int {
        try call("Reading a file", path(of: descriptor)) {
            pread(descriptor.number, bytes.baseAddress, bytes.count, off_t(offset))
        }
    }

    package func readFromPageCache(
        _ descriptor: Descriptor, into bytes: UnsafeMutableRawBufferPointer, at offset: Int64
    ) -> Int? {
        guard let start = bytes.baseAddress else { return 0 }
        let count = larder_read_nowait(descriptor.number, start, bytes.count, offset)
        return count < 0 ? nil : count
    }

    /// Writes one page and tests whether the kernel reports it as cached, and as dropped after the request.
    package func tellsReferences(in directory: String) -> Bool {
        let path = directory + "/.pages"
        let number = larder_open(path, LARDER_OPEN_OR_CREATE)
        guard number >= 0 else { return false }
        defer {
            Glibc.close(number)
            Glibc.unlink(path)
        }
        let (descriptor, page) = (Descriptor(number: number), [UInt8](repeating: 1, count: 4096))
        guard pwrite(number, page, page.count, 0) == page.count, fdatasync(number) == 0 else { return false }
        let range = 0..<Int64(page.count)
        return isCached(descriptor, range) && drops(descriptor, range, of: range)
    }

    package func isCached(_ descriptor: Descriptor, _ range: ByteRange) -> Bool {
        let (first, length) = (range.lowerBound, range.length)
        guard larder_cached_pages(descriptor.number, first, length) == larder_pages(first, length) else { return false }
        // Read-ahead fills pages in ascending order: if the last page is filled, all are.
        var last: UInt8 = 0
        return larder_read_nowait(descriptor.number, &last, 1, range.upperBound - 1) == 1
    }

    package func drops(_ descriptor: Descriptor, _ range: ByteRange, of block: ByteRange) -> Bool {
        larder_drop_pages(descriptor.number, block.lowerBound, block.length) == 0
            && larder_cached_pages(descriptor.number, range.lowerBound, range.length) == 0
    }

    package func write(
        _ descriptor: Descriptor, _ bytes: UnsafeRawBufferPointer, at offset: Int64
    ) throws(CacheError) -> Int {
        try call("Writing a file", path(of: descriptor)) {
            pwrite(descriptor.number, bytes.baseAddress, bytes.count, off_t(offset))
        }
    }

    package func punch(_ descriptor: Descriptor, _ range: ByteRange) throws(CacheError) {
        guard !range.isEmpty else { return }
        try call("Punching a hole into a file", path(of: descriptor)) {
            larder_punch_hole(descriptor.number, range.lowerBound, range.length)
        }
    }

    package func truncate(_ descriptor: Descriptor, to size: Int64) throws(CacheError) {
        try call("Truncating a file", path(of: descriptor)) { ftruncate(descriptor.number, off_t(size)) }
    }

    package func startSync(_ descriptor: Descriptor) { _ = larder_start_write(descriptor.number) }

    package func sync(_ descriptor: Descriptor) throws(CacheError) {
        try call("Syncing a file", path(of: descriptor)) { fdatasync(descriptor.number) }
    }

    package func status(_ descriptor: Descriptor) throws(CacheError) -> FileStatus {
        var found = stat()
        try call("Reading the status of a file", path(of: descriptor)) { fstat(descriptor.number, &found) }
        return FileStatus(found)
    }

    package func status(of path: String) throws(CacheError) -> FileStatus? {
        var found = stat()
        guard lstat(path, &found) == 0 else {
            let number = errno
            if number == ENOENT || number == ENOTDIR { return nil }
            throw CacheError(errno: number, doing: "Reading the status of a file", path: path)
        }
        return FileStatus(found)
    }

    package func freeBytes(at path: String) throws(CacheError) -> Int64 {
        try call("Measuring the free space", path) { larder_free_bytes(path) }
    }

    package func lock(_ descriptor: Descriptor, isShared: Bool) throws(CacheError) -> Bool {
        while larder_lock(descriptor.number, isShared ? 1 : 0) != 0 {
            switch errno {
            case EINTR: continue
            case EWOULDBLOCK: return false
            case let number: throw CacheError(errno: number, doing: "Locking a file", path: path(of: descriptor))
            }
        }
        return true
    }

    /// Repeats a system call while it is interrupted; throws if the result is negative.
    @discardableResult
    func call<Answer: SignedInteger>(
        _ doing: String, _ path: @autoclosure () -> String, _ body: () -> Answer
    ) throws(CacheError) -> Answer {
        while true {
            let answer = body()
            if answer >= 0 { return answer }
            let number = errno
            if number != EINTR { throw CacheError(errno: number, doing: doing, path: path()) }
        }
    }

    /// Path of an open file as the kernel reports it; for messages.
    private func path(of descriptor: Descriptor) -> String {
        let bytes = [UInt8](unsafeUninitializedCapacity: Int(PATH_MAX)) { buffer, filled in
            guard let start = buffer.baseAddress else { return }
            let count = start.withMemoryRebound(to: CChar.self, capacity: buffer.count) {
                readlink("/proc/self/fd/\(descriptor.number)", $0, buffer.count)
            }
            filled = max(0, count)
        }
        return bytes.isEmpty ? "file \(descriptor.number)" : String(decoding: bytes, as: UTF8.self)
    }
}

extension FileStatus {
    fileprivate init(_ found: stat) {
        self.init(
            size: Int64(found.st_size), diskBytes: Int64(found.st_blocks) * 512,
            isRegular: found.st_mode & S_IFMT == S_IFREG)
    }
}
