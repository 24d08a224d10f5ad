import CacheCore
import CacheStore
import CacheTracing
import Logging

/// Execution of jobs: starting items, ending jobs at their limits, saving progress.
extension PrefetchQueue {
    /// How long finished jobs and idempotency keys are kept.
    static let retention = Duration.seconds(7 * 24 * 3600)
    /// The interval at which progress is saved.
    private static let saveInterval = Duration.seconds(1)
    /// The interval at which the ends of jobs are predicted.
    private static let predictionInterval = Duration.milliseconds(500)
    /// The interval at which job limits are checked, unless one expires sooner.
    private static let tickInterval = Duration.milliseconds(250)

    /// Resumes the unfinished jobs of the last process and executes jobs until cancelled. Running items are then
    /// queued again. Call it once.
    func run(in cache: AssetCache) async {
        await withDiscardingTaskGroup { group in
            group.addTask { await self.watchLimits(in: cache) }
            group.addTask { await self.pruneHourly() }
            group.addTask { await self.open(in: cache) }
            group.addTask { await self.measureAhead(in: cache) }
            group.addTask { for await _ in self.unsaved { await self.saveLogged() } }
            group.addTask { await self.followReaders(in: cache) }
            for await start in starts {
                group.addTask { await self.carryOut(start, in: cache) }
            }
        }
        // Runs that were stopped by the cancellation are recorded as queued.
        change { $0.close(at: $1) }
        await saveLogged()
    }

    /// Loads unfinished jobs and opens the schedule. A catalog error is retried.
    private func open(in cache: AssetCache) async {
        repeat {
            let isLoaded = await logged("prefetch jobs could not be loaded") { () async throws(CacheError) in
                try await self.loadUnfinishedJobs()
                // Claims come before the first run, so that the stored items of every job are protected from the
                // others.
                for job in self.look({ $0.ids }) { _ = try await self.spaceClaims(of: job, in: cache) }
            }
            if isLoaded {
                change { $0.open(at: $1) }
                return
            }
        } while await isPast(Self.saveInterval)
    }

    /// Executes one run: its fill races with the signal that stops it.
    private func carryOut(_ start: Start, in cache: AssetCache) async {
        let begin = uptime()
        let trace = tracer.isEnabled ? RequestTrace(span: tracer.span("job.item", .internal)) : nil
        let outcome = await withTaskGroup(of: PrefetchSchedule.Outcome?.self) { race in
            race.addTask { await RequestTrace.$current.withValue(trace) { await self.fill(start.run, in: cache) } }
            race.addTask {
                for await _ in start.stop {}
                return .interrupted
            }
            var outcome: PrefetchSchedule.Outcome?
            while outcome == nil, let next = await race.next() { outcome = next }
            race.cancelAll()
            return outcome ?? .interrupted
        }
        end(trace?.span, of: start.run, outcome)
        if outcome != .interrupted { latencies.itemEnded(after: uptime() - begin) }
        ended(start.run, reportToNode(start.run, outcome) ? .interrupted : outcome)
        saveSoon()
    }

    /// Ends the span of a run.
    private func end(_ span: TraceSpan?, of run: Run, _ outcome: PrefetchSchedule.Outcome) {
        guard let span else { return }
        span.set("larder.job.id", run.job)
        switch outcome {
        case .failed(let error), .timedOut(let error), .cancelled(let error), .changed(let error),
            .waiting(_, _, let error):
            span.fail(error.code)
        case .succeeded, .expanded, .followed, .interrupted: break
        }
        span.end()
    }

    /// Fetches the item of the run and maps its error to an outcome. Nil during shutdown: the run then waits to be
    /// stopped.
    private func fill(_ run: Run, in cache: AssetCache) async -> PrefetchSchedule.Outcome? {
        guard let item = look({ $0.item(of: run) }) else { return .interrupted }
        // A live playlist is followed by the node of its job, which knows its files.
        if item.list == nil, !item.followsLive, look({ $0.isRouted(run.job) }),
            let outcome = await fleet?.runAtOwner(run, item, in: cache)
        {
            return outcome
        }
        let (begin, known) = (uptime(), item.followsLive ? look { $0.knownFiles(of: run) } : [])
        let refusedWrites = cache.context.store.refusedWrites
        var fits = false
        do throws(CacheError) {
            try await check(item, of: run.job, in: cache)
            if item.list != nil {
                return .expanded(try await cache.lister.items(of: item, for: look { $0.owner(of: run.job) }))
            }
            let jobSpace = try await spaceClaims(of: run.job, in: cache)
            var fill = PrefetchFill(
                cache: cache, item: item, pace: pace(of: run.job), jobSpace: jobSpace, known: known
            ) { progress in
                self.change { $0.progressed(run, progress, at: $1) }
            }
            defer { fits = !fill.exceedsCapacity }
            try await fill.run()
            // The claims of a live stream would grow without end.
            if look({ $0.isOfLive(run) }) { fill.releaseClaim() }
            if let interval = fill.reloadInterval {
                return .followed(
                    fill.children ?? [], .live(run), max(.zero, interval - (uptime() - begin)), nil)
            }
            return fill.children.map { .expanded($0) } ?? .succeeded
        } catch {
            let isDiskFull =
                fits && error.code == .storageFull || cache.context.space.isShortOfDisk
                || cache.context.store.refusedWrites != refusedWrites
            if let wait = await wait(of: item, after: error, isDiskFull: isDiskFull, in: cache) { return wait }
            let recorded = RecordedError(await located(error, of: item, in: cache))
            if item.followsLive, error.isTemporary(isFirst: known.isEmpty) {
                return .followed([], .live(run), nil, recorded)
            }
            switch error.code {
            case .assetChanged: return .changed(recorded)
            case .upstreamTimedOut: return .timedOut(recorded)
            case .cancelled: return Task.isCancelled ? .interrupted : .cancelled(recorded)
            case .shuttingDown: return nil
            default: return .failed(recorded)
            }
        }
    }

    /// The error of an item with the address of its upstream; the messages of other failures name it already.
    private func located(_ error: CacheError, of item: JobItemRecord, in cache: AssetCache) async -> CacheError {
        guard case .upstreamRefused = error.code,
            // An item that can no longer be resolved has no address.
            let target = try? await cache.resolver.resolve(item.reference)
        else { return error }
        var located = error
        located.message = "\(error.message.prefix(200)) (\(UpstreamURL.address(of: target.url)))"
        return located
    }

    /// Ends jobs at their time limits and the waits of items, and saves progress periodically.
    private func watchLimits(in cache: AssetCache) async {
        var savedAt = uptime()
        var predictionAt = savedAt
        while true {
            let now = moment
            let wait = min(look { $0.nextLimit(at: now) } ?? Self.tickInterval, Self.tickInterval)
            guard await isPast(max(wait, .milliseconds(1))) else { return }
            let hasExpired = change { $0.expire(at: $1) }
            checkHolds(in: cache)
            cache.context.readPoints.watch(watches)
            let begin = uptime()
            if begin >= predictionAt {
                change { $0.predict(at: $1) }
                // Predictions of many jobs take at most 2 % of the time.
                predictionAt = begin + max(Self.predictionInterval, (uptime() - begin) * 50)
            }
            await publishChanges()
            if hasExpired || uptime() - savedAt >= Self.saveInterval {
                saveSoon()
                savedAt = uptime()
            }
        }
    }

    /// The points that unfinished jobs wait for.
    private var watches: [ReadPoints.Watch] {
        let own = look { $0.triggers }
        let others = fleet?.triggers ?? []
        return (own + others).map {
            ReadPoints.Watch(job: $0.job, asset: $0.trigger.assetID, percent: $0.trigger.percent)
        }
    }

    /// Starts the jobs whose point a reader has passed, until cancellation. After an error a later read repeats it.
    private func followReaders(in cache: AssetCache) async {
        for await job in cache.context.readPoints.passed {
            await logged("a job could not be started by a reader") { () async throws(CacheError) in
                do throws(CacheError) { try await cache.jobs.passed(job) } catch {
                    guard error.code == .notFound || error.code == .conflict else { throw error }
                }
            }
        }
    }

    /// Removes old jobs from the catalog, at once and then hourly.
    private func pruneHourly() async {
        repeat {
            let limit = wallClock.now() - Self.retention
            await logged("old jobs could not be removed") { () async throws(CacheError) in
                try await self.catalog.pruneJobs(before: limit)
            }
        } while await isPast(.seconds(3600))
    }

    /// Saves the changes. A failure is logged, and the changes are part of the next save.
    func saveLogged(within limit: Duration? = nil) async {
        await logged("the progress of jobs could not be saved") { () async throws(CacheError) in
            try await self.saveChanges(within: limit)
        }
    }

    /// Sleeps for `wait`. Returns false if the task was cancelled before.
    private func isPast(_ wait: Duration) async -> Bool {
        do {
            try await clock.sleep(for: wait)
            return true
        } catch {
            return false
        }
    }

    /// Runs `body` and logs its error, unless it was cancelled. Returns whether it succeeded.
    @discardableResult
    private func logged(_ message: Logger.Message, _ body: () async throws(CacheError) -> Void) async -> Bool {
        do throws(CacheError) {
            try await body()
            return true
        } catch {
            if error.code != .cancelled { logger.error(message, metadata: ["error": "\(error)"]) }
            return false
        }
    }
}

extension CacheError {
    /// Whether a live playlist is loaded again after this error. `isFirst`: it was never loaded.
    fileprivate func isTemporary(isFirst: Bool) -> Bool {
        switch code {
        case .assetChanged: true
        case .upstreamTimedOut: !isFirst
        default: !isFirst && code.isWorthRetrying
        }
    }
}

extension ItemWait.Hold {
    /// The hold of a live playlist alone.
    fileprivate static func live(_ run: PrefetchSchedule.Run) -> ItemWait.Hold {
        ItemWait.Hold(.live, of: "\(run.job) \(run.item)")
    }
}
