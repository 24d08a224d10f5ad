import CacheCore
import CacheStore

/// The causes that items wait for, and their ends.
extension PrefetchQueue {
    /// The state of the disk, for the comparison with a later one.
    struct DiskState {
        var freeBytes: Int64
        /// Whether the free space was below the policy's `minFreeDiskBytes`.
        var isShort: Bool

        init(of context: EngineContext) {
            // A file system that cannot be measured does not end the wait: the item is repeated at intervals.
            freeBytes = (try? context.store.freeDiskBytes()) ?? 0
            isShort = context.space.isShortOfDisk
        }

        /// The growth of the free space that can end the wait.
        private static let growth: Int64 = 1 << 20

        /// Whether an item can find space that there was not at the `earlier` state.
        func hasGrown(since earlier: DiskState) -> Bool {
            !isShort && (earlier.isShort || freeBytes >= earlier.freeBytes + Self.growth)
        }
    }

    /// The outcome of a run with this error, if its item has to wait; nil: the error is final.
    ///
    /// - Parameter isDiskFull: Whether the disk has no space, or has refused a write during the run.
    func wait(
        of item: JobItemRecord, after error: CacheError, isDiskFull: Bool, in cache: AssetCache
    ) async -> PrefetchSchedule.Outcome? {
        let context = cache.context
        // An item that cannot be resolved has no upstream to wait for: its error is final.
        guard !Task.isCancelled, let target = try? await cache.resolver.resolve(item.reference) else { return nil }
        var conditions = ItemWait.Conditions()
        conditions.circuitPause = context.upstreams.health.pause(
            of: target, of: context.upstreams.addresses(of: target).count)
        conditions.lacksCredentials = context.upstreams.accounts.lacksCredentials(
            target.originName, target.settings.auth)
        conditions.isBudgetExhausted = context.upstreams.health.isBudgetExhausted(of: target)
        conditions.permitsRetries = target.settings.retries > 0
        conditions.isDiskFull = isDiskFull
        guard let (cause, time) = ItemWait.after(error.code, under: conditions) else { return nil }
        if cause == .disk {
            let present = DiskState(of: context)
            fullDisk.withLock { $0 = present }
        }
        return .waiting(ItemWait.Hold(cause, of: target.party), time, RecordedError(error))
    }

    /// Wakes the items with a cause that has ended. A cause that only a request can test is tested by one item.
    func checkHolds(in cache: AssetCache) {
        let holds = look { $0.presentHolds }
        guard !holds.isEmpty else { return }
        var (ended, probed): ([ItemWait.Hold], [ItemWait.Hold]) = ([], [])
        for hold in holds {
            let origin = cache.resolver.origins[hold.party]?.origin
            switch hold.cause {
            case .circuit:
                switch cache.context.upstreams.health.circuit(of: hold.party, at: origin?.settings.addresses) {
                case .closed: ended.append(hold)
                case .open(let until) where until <= cache.context.uptime(): probed.append(hold)
                case .open, .halfOpen: break
                }
            case .credentials:
                let isMissing = origin.map {
                    cache.context.upstreams.accounts.lacksCredentials($0.name, $0.settings.auth)
                }
                if isMissing != true { ended.append(hold) }
            case .disk:
                let now = DiskState(of: cache.context)
                if fullDisk.withLock({ $0.map(now.hasGrown) ?? false }) { probed.append(hold) }
            case .quota, .live: break
            }
        }
        guard !ended.isEmpty || !probed.isEmpty else { return }
        if change({ $0.wake(ended, probing: probed, at: $1) }) { saveSoon() }
    }
}
