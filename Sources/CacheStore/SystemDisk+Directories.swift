package import CacheCore
import Glibc

extension SystemDisk {
    package func list(_ directory: String) throws(CacheError) -> [String] {
        guard let stream = opendir(directory) else {
            throw CacheError(errno: errno, doing: "Listing", path: directory)
        }
        defer { closedir(stream) }
        var names: [String] = []
        while true {
            errno = 0
            guard let entry = readdir(stream) else { break }
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != "." && name != ".." { names.append(name) }
        }
        guard errno == 0 else { throw CacheError(errno: errno, doing: "Listing", path: directory) }
        return names
    }

    package func createDirectory(_ path: String) throws(CacheError) -> Bool {
        guard mkdir(path, 0o700) != 0 else { return true }
        let number = errno
        if number == EEXIST { return false }
        throw CacheError(errno: number, doing: "Creating the directory", path: path)
    }

    package func syncDirectory(_ path: String) throws(CacheError) {
        let descriptor = try open(path, .readOnly)
        defer { close(descriptor) }
        try call("Syncing the directory", path) { fsync(descriptor.number) }
    }

    package func rename(_ path: String, to newPath: String) throws(CacheError) {
        try call("Renaming", path) { Glibc.rename(path, newPath) }
    }

    package func unlink(_ path: String) throws(CacheError) {
        guard Glibc.unlink(path) != 0 else { return }
        let number = errno
        if number != ENOENT { throw CacheError(errno: number, doing: "Removing", path: path) }
    }
}
