public import Synchronization

/// A `Mutex` with a place in the total order of locks (``LockRank``).
///
/// Debug builds trap when a thread takes it in another order. In release builds it is the `Mutex` alone: `public`, because
/// the compiler specializes no inlinable function with `package` access in other modules.
public struct OrderedMutex<Value: ~Copyable>: ~Copyable, Sendable {
    @usableFromInline let mutex: Mutex<Value>
    #if DEBUG
        @usableFromInline let rank: LockRank
    #endif

    @inlinable public init(_ rank: LockRank, _ value: consuming sending Value) {
        mutex = Mutex(value)
        #if DEBUG
            self.rank = rank
        #endif
    }

    /// Calls `body` while the lock is held.
    @inlinable public borrowing func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        #if DEBUG
            rank.enter()
            defer { rank.leave() }
        #endif
        return try mutex.withLock(body)
    }

    /// Calls `body` while the lock is held; returns nil if another thread holds it.
    @inlinable public borrowing func withLockIfAvailable<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result? {
        #if DEBUG
            rank.enter()
            defer { rank.leave() }
        #endif
        return try mutex.withLockIfAvailable(body)
    }
}
