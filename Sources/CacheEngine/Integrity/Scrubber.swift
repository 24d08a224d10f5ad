package import CacheCore
import CacheStore
import Logging

/// Compares stored bytes with their checksums at a limited rate; one scrub at a time.
package final class Scrubber: Sendable {
    private struct State {
        /// The most recent reports, in order of creation.
        var reports: [ScrubReport] = []
    }

    private let context: EngineContext
    private let evictor: Evictor
    private let schedule: ScrubSchedule
    /// Guards the reports.
    private let state = OrderedMutex(.leaf, State())
    /// The IDs of scrubs that are to be run.
    private let orders: AsyncStream<String>
    /// Delivers the IDs of new scrubs to `run`.
    private let begin: AsyncStream<String>.Continuation
    /// The number of reports that are remembered.
    private static let keptReports = 32

    init(context: EngineContext, evictor: Evictor, schedule: ScrubSchedule) {
        self.context = context
        self.evictor = evictor
        self.schedule = schedule
        (orders, begin) = AsyncStream.makeStream()
    }

    /// Starts a scrub. Throws `.conflict` if one is in progress.
    package func start(_ order: ScrubRequest) throws(CacheError) -> ScrubReport {
        let report = ScrubReport(
            id: context.random.identifier(), asset: order.asset,
            bytesPerSecond: order.bytesPerSecond ?? schedule.bytesPerSecond, startedAt: context.wallClock.now())
        let running = state.withLock { state -> String? in
            if let last = state.reports.last, last.state == .running { return last.id }
            state.reports = state.reports.suffix(Self.keptReports - 1) + [report]
            return nil
        }
        if let running { throw CacheError(.conflict, "The scrub \(running) is in progress; wait until it has ended.") }
        begin.yield(report.id)
        return report
    }

    /// The remembered scrubs, the newest first.
    var all: [ScrubReport] { state.withLock { $0.reports.reversed() } }

    /// The report of a scrub; nil if it is not remembered.
    subscript(id: String) -> ScrubReport? { state.withLock { $0.reports.last { $0.id == id } } }

    /// The report of the newest scrub; nil before the first one.
    var latest: ScrubReport? { state.withLock { $0.reports.last } }

    /// Runs requested and scheduled scrubs until cancellation.
    func run(clock: any Clock<Duration>) async {
        await withDiscardingTaskGroup { group in
            group.addTask {
                for await id in self.orders { await self.scrub(id, clock) }
            }
            guard let interval = schedule.interval else { return }
            group.addTask {
                // A scheduled scrub is omitted if one is in progress.
                while (try? await clock.sleep(for: interval)) != nil { _ = try? self.start(ScrubRequest()) }
            }
        }
    }

    /// Runs a scrub and records its end.
    private func scrub(_ id: String, _ clock: any Clock<Duration>) async {
        guard let report = self[id] else { return }
        var failure: CacheError?
        do throws(CacheError) {
            try await scrub(report, clock)
        } catch {
            failure = error
        }
        let now = context.wallClock.now()
        change(id) { report in
            report.finishedAt = now
            report.error = failure?.message
            report.state = failure == nil ? .succeeded : failure?.code == .cancelled ? .cancelled : .failed
        }
        context.counters.scrubEnded()
        // A scrub with findings is logged as an error.
        let level: Logger.Level = failure == nil && (self[id]?.badBlocks ?? 0) == 0 ? .info : .error
        context.logger.log(
            level: level, "scrub ended",
            metadata: [
                "scrub": "\(id)", "bytes": "\(self[id]?.bytesDone ?? 0)", "badBlocks": "\(self[id]?.badBlocks ?? 0)",
                "error": "\(failure?.message ?? "none")",
            ])
    }

    /// Checks all assets in the order of their IDs. An asset that cannot be checked does not stop the scrub; the first
    /// error is thrown at the end.
    private func scrub(_ report: ScrubReport, _ clock: any Clock<Duration>) async throws(CacheError) {
        try await context.commits.flush()
        let catalog = context.store.catalog
        if let asset = report.asset {
            change(report.id) { $0.assetsTotal = 1 }
            return try await look(at: asset, report, clock)
        }
        let totals = try await catalog.totals()
        change(report.id) { report in
            report.assetsTotal = Int64(totals.assets)
            report.bytesTotal = totals.cachedBytes
        }
        var (last, failures): (AssetID?, [(asset: AssetID, error: CacheError)]) = (nil, [])
        while true {
            let page = try await catalog.assetIDs(after: last, limit: 256)
            guard let end = page.last else { break }
            for id in page {
                do throws(CacheError) {
                    try await look(at: id, report, clock)
                } catch {
                    if error.code == .cancelled { throw error }
                    failures.append((id, error))
                }
            }
            last = end
        }
        guard let first = failures.first else { return }
        throw CacheError(
            first.error.code,
            "\(failures.count) assets could not be checked; the first is \(first.asset): \(first.error.message)",
            cause: first.error.cause)
    }

    /// Verifies all stored bytes of one asset; damaged bytes are invalidated. Without damage, the file counts as
    /// verified, and the digest of a complete asset is compared.
    private func look(
        at id: AssetID, _ report: ScrubReport, _ clock: any Clock<Duration>
    ) async throws(CacheError) {
        if Task.isCancelled { throw CacheError(.cancelled, "The service is shutting down.") }
        // Deletes the asset's row if its checksum does not match.
        if try await context.store.discardIfDamaged(id) { change(report.id) { $0.damagedRows += 1 } }
        defer { change(report.id) { $0.assetsDone += 1 } }
        guard let asset = try await evictor.openKnown(id) else { return }
        defer { context.openAssets.release(asset) }
        let (file, runs, tally) = asset.look { ($0.file, $0.ledger.extents.runs, DigestAccumulator(summingUp: $0)) }
        if report.asset != nil {
            let bytes = runs.byteCount
            change(report.id) { $0.bytesTotal = bytes }
        }
        guard let file, let name = file.name else { return }
        guard file.lock == nil else { return change(report.id) { $0.lockedAssets += 1 } }
        let damaged = try await context.store.catalog.dropStraySums(of: name.serial)
        if damaged > 0 { change(report.id) { $0.damagedRows += Int64(damaged) } }
        var isRight = true
        for run in runs {
            for part in BlockChecksums.cut(run) {
                isRight = try await look(at: part, of: file, asset, tally, report, clock) && isRight
            }
        }
        guard isRight else { return }
        try await context.store.catalog.checked(name)
        guard let tally, let fits = asset.summedUp(tally, of: file) else { return }
        change(report.id) { report in
            report.digests += 1
            if !fits { report.badDigests += 1 }
        }
        if !fits { context.counters.contradicted() }
    }

    /// Verifies one part of a file, then waits as long as the rate requires. Returns whether the part is undamaged.
    private func look(
        at part: ByteRange, of file: SparseFile, _ asset: OpenAsset, _ tally: DigestAccumulator?, _ report: ScrubReport,
        _ clock: any Clock<Duration>
    ) async throws(CacheError) -> Bool {
        let started = context.uptime()
        // Bytes that were evicted in the meantime are no loss. The others stay during the read.
        guard let lease = asset.lease(part) else { return true }
        defer { asset.end(lease) }
        guard asset.look({ $0.file === file }) else { return true }
        let isRight: Bool
        do throws(CacheError) {
            isRight = try await context.diskThreads.run { () throws(CacheError) in
                guard let bytes = try asset.readChecked(part, of: file) else { return false }
                tally?.update(bytes)
                return true
            }
        } catch  where error.code == .assetChanged {
            return true  // removed in the meantime: no loss either
        }
        context.counters.scrubbed(bytes: part.length)
        change(report.id) { report in
            report.bytesDone += part.length
            if !isRight {
                report.badBlocks += 1
                report.badBytes += part.length
            }
        }
        guard let rate = report.bytesPerSecond, rate > 0 else { return isRight }
        let due = Duration.seconds(Double(part.length) / Double(rate)) - (context.uptime() - started)
        // A cancellation is detected before the next asset.
        if due > .zero { try? await clock.sleep(for: due) }
        return isRight
    }

    /// Changes the report of a scrub under the lock.
    private func change(_ id: String, _ body: (inout ScrubReport) -> Void) {
        state.withLock { state in
            guard let index = state.reports.lastIndex(where: { $0.id == id }) else { return }
            body(&state.reports[index])
        }
    }
}

/// Management API.
extension Scrubber {
    /// A page of the scrubs since the start, at most the last 32, the newest first. The cursor is the ID of the last
    /// scrub of the previous page. Throws `.invalidField("cursor")` if that scrub is no longer remembered.
    package func page(
        limit: Int, cursor: String?
    ) throws(CacheError) -> (items: [ScrubReport], nextCursor: String?) {
        var scrubs = all[...]
        if let cursor {
            guard let last = scrubs.firstIndex(where: { $0.id == cursor }) else {
                throw .invalid("cursor", "The cursor is unknown; start again without a cursor.")
            }
            scrubs = scrubs[(last + 1)...]
        }
        let page = Array(scrubs.prefix(limit))
        return (page, page.count < scrubs.count ? page.last?.id : nil)
    }

    /// The number of scrubs that `page` lists.
    package var count: Int { all.count }

    /// Returns the report of a scrub. Throws `.notFound` if it is unknown.
    package func report(_ id: String) throws(CacheError) -> ScrubReport {
        guard let report = self[id] else { throw CacheError(.notFound, "There is no scrub \(id).") }
        return report
    }
}
