import CacheCore
import CacheStore
import Logging
import Synchronization

/// What the origins' files of credentials hold, in memory; the files are read again when they may have changed.
///
/// Values go into requests to the origin's own host and nowhere else: no log, error or figure has them.
final class CredentialShelf: Sendable {
    private struct Entry {
        var fields = HeaderList()
        /// What is wrong with the file at present, so that it is logged once.
        var complaint: String?
    }

    private let store: Store
    private let threads: DiskThreads
    private let directory: String?
    private let logger: Logger
    private let entries = Mutex<[String: Entry]>([:])

    /// `directory`: where the files lie; nil: there are none.
    init(store: Store, threads: DiskThreads, directory: String?, logger: Logger) {
        self.store = store
        self.threads = threads
        self.directory = directory
        self.logger = logger
    }

    /// The fields that `file` held when it was last read and good; none of a file that never was.
    func fields(of file: String) -> HeaderList {
        entries.withLock { $0[file]?.fields ?? HeaderList() }
    }

    /// Reads a file that an origin is about to name. Throws `.invalidField("credentialsFile")` where it cannot be used;
    /// what is known of it stays.
    func load(_ file: String) async throws(CacheError) {
        let fields = try await threads.run { try self.read(file) }
        entries.withLock { $0[file] = Entry(fields: fields) }
    }

    /// Reads the files again, and forgets all others; of a file that cannot be used what is known stays.
    func reread(_ files: Set<String>) async throws(CacheError) {
        entries.withLock { entries in entries = entries.filter { files.contains($0.key) } }
        try await threads.run { for file in files { self.take(file) } }
    }

    /// Reads one file again, then calls `done`, in any case, on a thread for waiting.
    func reread(_ file: String, then done: @escaping @Sendable () -> Void) {
        threads.submit { isOpen in
            if isOpen { self.take(file) }
            done()
        }
    }

    private func take(_ file: String) {
        do throws(CacheError) {
            let fields = try read(file)
            let isNew = entries.withLock { entries in
                defer { entries[file] = Entry(fields: fields) }
                return entries[file]?.fields != fields
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
            throw CacheError(.invalidField("credentialsFile"), "There is no directory of credentials to find it in.")
        }
        do {
            let bytes = try store.readForeign(file, below: directory, limit: CredentialsText.maxBytes)
            return try CredentialsText.parse(bytes)
        } catch {
            throw CacheError(.invalidField("credentialsFile"), error.message, cause: error.cause)
        }
    }
}
