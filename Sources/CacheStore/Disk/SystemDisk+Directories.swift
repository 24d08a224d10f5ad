package import CacheCore
import Glibc

/// Directory operations, and the test for hole support. `Disk` documents the methods.
extension SystemDisk {
    /// Writes two 64 KiB pieces, 4 MiB apart, and compares the disk usage with the size; then punches the first piece.
    package func holes(in directory: String) throws(CacheError) -> HoleSupport {
        let path = directory + "/.holes"
        let descriptor = try open(path, .openOrCreate)
        defer {
            close(descriptor)
            _ = Glibc.unlink(path)
        }
        let page = [UInt8](repeating: 1, count: 64 << 10)
        let far: Int64 = 4 << 20
        try truncate(descriptor, to: 0)
        try writeAll(descriptor, page)
        let number = descriptor.number
        try call("Writing a file", path) { pwrite(number, page, page.count, off_t(far)) }
        try sync(descriptor)
        let areSparse = try status(descriptor).diskBytes < far
        do throws(CacheError) {
            try punch(descriptor, 0..<Int64(page.count))
            return HoleSupport(areSparse: areSparse, canBePunched: true)
        } catch  where error.isUnsupported {
            return HoleSupport(areSparse: areSparse, canBePunched: false)
        }
    }

    package func list(_ directory: String) throws(CacheError) -> [String] {
        try entries(of: directory).map(\.name)
    }

    package func directories(in directory: String, named names: Set<String>) throws(CacheError) -> Set<String> {
        var found: Set<String> = []
        for (name, type) in try entries(of: directory) where names.contains(name) {
            switch Int(type) {
            case Int(DT_DIR): found.insert(name)
            // `path/.` exists only if `path` is a directory. Not all file systems tell the types.
            case Int(DT_LNK), Int(DT_UNKNOWN):
                if try status(of: "\(directory)/\(name)/.") != nil { found.insert(name) }
            default: break
            }
        }
        return found
    }

    /// The names and types (`DT_DIR` and others) of the entries of a directory.
    private func entries(of directory: String) throws(CacheError) -> [(name: String, type: UInt8)] {
        guard let stream = opendir(directory) else {
            throw CacheError(errno: errno, doing: "Listing a directory", path: directory)
        }
        defer { closedir(stream) }
        var entries: [(name: String, type: UInt8)] = []
        while true {
            // readdir(3) returns NULL at the end and on failure; only errno tells the two apart.
            errno = 0
            guard let entry = readdir(stream) else { break }
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != "." && name != ".." { entries.append((name, entry.pointee.d_type)) }
        }
        guard errno == 0 else { throw CacheError(errno: errno, doing: "Listing a directory", path: directory) }
        return entries
    }

    package func createDirectory(_ path: String) throws(CacheError) -> Bool {
        guard mkdir(path, 0o700) != 0 else { return true }
        let number = errno
        if number == EEXIST { return false }
        throw CacheError(errno: number, doing: "Creating a directory", path: path)
    }

    package func syncDirectory(_ path: String) throws(CacheError) {
        let descriptor = try open(path, .readOnly)
        defer { close(descriptor) }
        try call("Syncing a directory", path) { fsync(descriptor.number) }
    }

    package func rename(_ path: String, to newPath: String) throws(CacheError) {
        try call("Renaming a file", path) { Glibc.rename(path, newPath) }
    }

    package func unlink(_ path: String) throws(CacheError) {
        guard Glibc.unlink(path) != 0 else { return }
        let number = errno
        if number != ENOENT { throw CacheError(errno: number, doing: "Removing a file", path: path) }
    }
}
