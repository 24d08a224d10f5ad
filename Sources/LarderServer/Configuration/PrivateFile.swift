import Foundation
import Glibc

/// Small files with secrets, which only their owner can read.
enum PrivateFile {
    /// A file that cannot be used; its description is a sentence.
    struct Fault: Error, CustomStringConvertible {
        let description: String
    }

    /// The bytes of the file; nil: it does not exist. Throws `Fault` if other users can read it.
    static func read(_ path: String) throws(Fault) -> Data? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        if descriptor < 0 && errno == ENOENT { return nil }
        var status = stat()
        guard descriptor >= 0 else { throw unreadable(path) }
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { throw unreadable(path) }
        guard status.st_mode & 0o077 == 0 else {
            throw Fault(description: "Other users can read or write the file \"\(path)\"; run chmod 600 on it.")
        }
        do { return try file.readToEnd() ?? Data() } catch { throw unreadable(path) }
    }

    /// Replaces the file at once, so that no reader sees a part of it. Directories that are missing are created for their
    /// owner only.
    static func replace(_ path: String, with text: String, mode: Int = 0o600) throws(Fault) {
        let target = URL(fileURLWithPath: path).resolvingSymlinksInPath()
        let temporary = target.path + ".new"
        do {
            try FileManager.default.createDirectory(
                at: target.deletingLastPathComponent(), withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700])
            unlink(temporary)  // of a program that was killed
            let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode_t(mode))
            guard descriptor >= 0 else { throw Fault(description: "") }
            let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
            try file.write(contentsOf: Data(text.utf8))
            guard fchmod(descriptor, mode_t(mode)) == 0, rename(temporary, target.path) == 0 else {
                throw Fault(description: "")
            }
        } catch {
            throw Fault(description: "\"\(path)\" cannot be written; check its permissions.")
        }
    }

    private static func unreadable(_ path: String) -> Fault {
        Fault(description: "\"\(path)\" cannot be read; check its permissions.")
    }
}
