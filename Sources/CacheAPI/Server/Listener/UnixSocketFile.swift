import CacheCore
import Glibc

/// The file of a Unix socket. It replaces the file of a process that has ended, and no other.
///
/// Processes that create or remove a socket in one directory lock the directory, so that none removes the file of
/// another one:
/// 1. ``claim()`` locks the directory. It removes a file without a listener.
/// 2. The server binds the path. Only this user can connect, because of the umask.
/// 3. ``opened(mode:)`` sets the mode, records the file and unlocks the directory.
/// 4. ``remove()`` removes the recorded file, and not its successor.
package final class UnixSocketFile: Sendable {
    /// The maximum length of a path in bytes (unix(7)).
    package static let maxPathBytes = 107

    /// A file on this machine.
    private struct Identity: Equatable {
        let device: dev_t
        let inode: ino_t
    }

    private let path: String
    /// The descriptor of the locked directory; nil: it is not locked.
    private let lock = OrderedMutex<Int32?>(.leaf, nil)
    /// A descriptor of the own file, so that its inode number is not used again; nil before ``opened(mode:)``.
    private let own = OrderedMutex<Int32?>(.leaf, nil)
    /// `O_PATH`, which Glibc's module hides.
    private static let pathOnly: Int32 = 0o10000000

    init(path: String) { self.path = path }

    deinit {
        unlock()
        own.withLock { if let descriptor = $0 { close(descriptor) } }
    }

    /// Throws `.invalidField("listen.address")` if another process listens, or if something else than a socket has the
    /// path.
    func claim() throws(CacheError) {
        try lockDirectory()
        guard let found = file() else { return }
        guard found.mode & S_IFMT == S_IFSOCK else {
            throw fault("The path exists and is not a socket; remove it, or choose another path.")
        }
        let socket = Self.connect(to: path)
        if let socket { close(socket) }
        guard socket == nil, errno == ECONNREFUSED else {
            throw fault("Another process listens on this path; stop it, or choose another path.")
        }
        unlink(path)
    }

    /// Throws `.invalidField("listen.socketMode")` if the mode cannot be set.
    func opened(mode: mode_t) throws(CacheError) {
        defer { unlock() }
        let descriptor = open(path, Self.pathOnly | O_NOFOLLOW | O_CLOEXEC)
        if descriptor >= 0 { own.withLock { $0 = descriptor } }
        guard descriptor >= 0, chmod(path, mode) == 0 else {
            throw CacheError(
                .invalidField("listen.socketMode"), "The mode cannot be set: \(String(cString: strerror(errno))).")
        }
    }

    func remove() {
        // Without the lock the file stays; a later start removes it.
        guard let own = own.withLock(\.self), (try? lockDirectory()) != nil else { return }
        defer { unlock() }
        var status = stat()
        guard fstat(own, &status) == 0, let file = file() else { return }
        if file.identity == Identity(device: status.st_dev, inode: status.st_ino) { unlink(path) }
    }

    /// A socket that is connected to the listener at `path`; nil: `errno` has the reason.
    package static func connect(to path: String) -> Int32? {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        guard path.utf8.count <= maxPathBytes else {
            errno = ENAMETOOLONG
            return nil
        }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let made = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard made >= 0 else { return nil }
        let code = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(made, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard code != 0 else { return made }
        let reason = errno
        close(made)
        errno = reason
        return nil
    }

    private func lockDirectory() throws(CacheError) {
        let parent = path.lastIndex(of: "/").map { String(path[...$0]) } ?? "."
        let directory = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard directory >= 0 else {
            throw fault("The directory cannot be opened: \(String(cString: strerror(errno))).")
        }
        guard flock(directory, LOCK_EX | LOCK_NB) == 0 else {
            close(directory)
            throw fault("Another process creates a socket in this directory; try again.")
        }
        lock.withLock { $0 = directory }
    }

    private func unlock() {
        lock.withLock { directory in
            if let directory { close(directory) }
            directory = nil
        }
    }

    /// The file at the path; nil: there is none.
    private func file() -> (mode: mode_t, identity: Identity)? {
        var status = stat()
        guard lstat(path, &status) == 0 else { return nil }
        return (status.st_mode, Identity(device: status.st_dev, inode: status.st_ino))
    }

    private func fault(_ sentence: String) -> CacheError { .invalid("listen.address", sentence) }
}
