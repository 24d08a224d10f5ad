#if DEBUG
    import Glibc
#endif

/// The total order of all locks (docs/internals/locks.md), outermost first. A thread takes a lock only if its rank is
/// higher than the ranks of all locks that the thread holds, so no two threads can wait for each other.
public enum LockRank: UInt8, CaseIterable, Sendable {
    /// The state of an open asset.
    case openAsset
    /// The attempts of a fill.
    case fillTransfer
    /// The asset and the fill that a transfer belongs to.
    case fillLocation
    /// The claims of all jobs on disk space.
    case jobClaims
    /// The space ledger and the reservations that wait for it.
    case spaceLedger
    /// A shard of the registry of open assets.
    case openAssets
    /// The purges in progress.
    case purgePlans
    /// The accounts of the origins.
    case originAccounts
    /// The credentials of one account.
    case account
    /// A shard of the reads that are not in the access trace yet.
    case recentReads
    /// The access trace.
    case accessTrace
    /// The punches that failed and are retried.
    case deferredPunches
    /// The work for the next commit.
    case pendingWork
    /// The order of the writes to an encrypted file.
    case encryptedWrites
    /// The unsynced and marked ranges of a file.
    case fileState
    /// The bytes of a file that the disk refused.
    case spilledBytes
    /// The descriptor of one file.
    case descriptor
    /// The ring of open descriptors.
    case descriptorRing
    /// The tokens that were ever valid.
    case issuedTokens
    /// The usage of one claim of a reader.
    case usageClaim
    /// The caches of prepared responses by event loop.
    case preparedResponses
    /// All locks under which only the clock and the source of random numbers are called.
    case leaf
    /// The clock and the source of random numbers; nothing is called under their locks.
    case system
}

#if DEBUG
    /// The ranks that each thread holds, one bit for each, in the pointer of a thread-specific value: no memory is
    /// allocated.
    extension LockRank {
        private static let key: pthread_key_t = {
            var key = pthread_key_t()
            precondition(pthread_key_create(&key, nil) == 0, "No thread-specific key is available for lock ranks.")
            return key
        }()

        private static var held: UInt {
            get { UInt(bitPattern: pthread_getspecific(key)) }
            set { pthread_setspecific(key, UnsafeRawPointer(bitPattern: newValue)) }
        }

        private var bit: UInt { 1 << UInt(rawValue) }

        /// Records that this thread is about to take a lock of this rank. Traps if that violates the order.
        @usableFromInline func enter() {
            let held = Self.held
            precondition(
                held < bit,
                "A lock of rank \(self) is taken under \(Self.allCases.filter { held & $0.bit != 0 }); see locks.md.")
            Self.held = held | bit
        }

        /// Records that this thread has released the lock of this rank.
        @usableFromInline func leave() { Self.held &= ~bit }
    }
#endif
