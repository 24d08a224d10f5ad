import CacheCore

/// The processes that have given the store's directory to this one and still send bytes of its files (``Store/handOver()``).
/// Each holds a shared lock (flock(2)) on a file until its end.
///
/// Until then no byte that was stored before this process may be zeroed or, in an encrypted file, written again: a former
/// process would send it.
final class FormerReaders: Sendable {
    private let layout: StoreLayout
    private let disk: any Disk
    /// The file for the next question; nil: there are none, and there will be none.
    private let question: OrderedMutex<Descriptor?>
    /// The own lock; nil before ``join()``.
    private let own = OrderedMutex<Descriptor?>(.leaf, nil)

    /// Called by the process that holds the store's ``DirectoryLock``.
    init(_ layout: StoreLayout, disk: any Disk) throws(CacheError) {
        (self.layout, self.disk) = (layout, disk)
        let isUnused = try disk.status(of: layout.readersLock) == nil
        question = OrderedMutex(.leaf, isUnused ? nil : try disk.open(layout.readersLock, .readOnly))
    }

    deinit {
        for descriptor in [question.withLock(\.self), own.withLock(\.self)] { descriptor.map(disk.close) }
    }

    /// Whether a former process still reads. Once false, it stays false. A lock that cannot be examined counts as held.
    var exist: Bool {
        question.withLock { descriptor in
            guard let asked = descriptor else { return false }
            guard (try? disk.lock(asked, isShared: false)) == true else { return true }
            disk.close(asked)
            descriptor = nil
            return false
        }
    }

    /// Makes this process one of them, until its end or that of this object.
    func join() throws(CacheError) {
        let descriptor = try disk.open(layout.readersLock, .openOrCreate)
        // Not while a question of this process holds the lock for a moment.
        let isJoined = try question.withLock { _ throws(CacheError) in try disk.lock(descriptor, isShared: true) }
        guard isJoined else {
            disk.close(descriptor)
            throw CacheError(.conflict, "The lock of the former readers is held exclusively.")
        }
        own.withLock { $0 = descriptor }
    }
}
