import CacheCore
import CacheStore
import Logging

/// Caches the header fields of the origins' credentials files. The files are read again when they may have changed.
///
/// The values are sent to the origin's own host only. No log, error or statistic contains them.
final class CredentialsFileCache: Sendable {
    /// The state of one credentials file.
    private struct Entry {
        var fields = HeaderList()
        /// The current error of the file, so that it is logged once; nil: the file is usable.
        var complaint: String?
        /// Whether a mounted origin has named the file since `load`. Until then an origin that is being saved may name it.
        var wasUsed = false
    }

    private let store: Store
    private let threads: DiskThreads
    private let directory: String?
    private let logger: Logger
    /// Guards the state of the files, by file name.
    private let entries = OrderedMutex<[String: Entry]>(.leaf, [:])

    /// `directory`: the directory of the files; nil: there are none.
    init(store: Store, threads: DiskThreads, directory: String?, logger: Logger) {
        self.store = store
        self.threads = threads
        self.directory = directory
        self.logger = logger
    }

    /// The fields of the last successful read of `file`; empty if there was none.
    func fields(of file: String) -> HeaderList {
        entries.withLock { $0[file]?.fields ?? HeaderList() }
    }

    /// Reads a file before an origin refers to it. Throws `.invalidField("credentialsFile")` if it cannot be used; its
    /// cached fields stay.
    func load(_ file: String) async throws(CacheError) {
        let fields = try await threads.run { try self.read(file) }
        entries.withLock { $0[file] = Entry(fields: fields) }
    }

    /// Reads the files of the mounted origins again, and drops the files that were used before and are not among them.
    /// The cached fields of an unusable file stay.
    func reread(_ files: Set<String>) async throws(CacheError) {
        entries.withLock { entries in
            entries = entries.filter { files.contains($0.key) || !$0.value.wasUsed }
            for file in files { entries[file, default: Entry()].wasUsed = true }
        }
        try await threads.run { for file in files { self.load(file) } }
    }

    /// Reads one file again, then calls `done` in any case, on a disk thread.
    func reread(_ file: String, then done: @escaping @Sendable () -> Void) {
        threads.submit { isOpen in
            if isOpen { self.load(file) }
            done()
        }
    }

    /// Replaces the cached fields of a file. An error is logged if it differs from the file's previous one.
    private func load(_ file: String) {
        do throws(CacheError) {
            let fields = try read(file)
            let isNew = entries.withLock { entries in
                let old = entries[file]
                entries[file] = Entry(fields: fields, wasUsed: old?.wasUsed ?? false)
                return old?.fields != fields
            }
            if isNew { logger.info("credentials replaced", metadata: ["file": "\(file)"]) }
        } catch {
            let isNew = entries.withLock { entries in
                defer { entries[file, default: Entry()].complaint = error.message }
                return entries[file]?.complaint != error.message
            }
            guard isNew else { return }
            logger.error("credentials not replaced", metadata: ["file": "\(file)", "error": "\(error.message)"])
        }
    }

    private func read(_ file: String) throws(CacheError) -> HeaderList {
        guard let directory else {
            throw .invalid("credentialsFile", "Set credentialsDirectory to use credentials files.")
        }
        do {
            let bytes = try store.readForeign(file, below: directory, limit: CredentialsText.maxBytes)
            return try CredentialsText.parse(bytes)
        } catch {
            throw CacheError(.invalidField("credentialsFile"), error.message, cause: error.cause)
        }
    }
}
