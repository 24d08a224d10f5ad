package import CacheCore
import CacheSimulation
import CacheStore
package import NIOCore

/// How a read ended.
package enum ReadEnding: Sendable {
    case sent
    /// The client closed the connection before the last byte.
    case clientGone
    case failed(CacheError)
}

/// The body bytes of a read that have left for the client.
package struct ReadTally: Sendable {
    /// Bytes that were on disk when the read began.
    package var bytesFromCache: Int64 = 0
    /// Bytes that were fetched while the read ran.
    package var bytesAfterFill: Int64 = 0
    /// The part of these that other nodes of the fleet have sent.
    package var bytesFromPeers: Int64 = 0
}

/// One reader of an asset: the plan of its response, and its body, handed out as the bytes arrive on disk.
///
/// A read holds its asset and a reader in the asset's ledger until `finish`, `abandon` or deinitialization. It hands
/// out the body in one of two forms: `next` suspends until bytes are there; `nextWithoutBlocking` serves an event
/// loop. A read has one consumer, which asks for the next bytes only after the last call is complete.
package final class ContentRead: Sendable {
    /// The generation that the read takes its bytes from, and its reader there. It changes only if the next
    /// generation has the same length and begins with the bytes already sent: see `ContentRead+Succession.swift`.
    struct Source: Sendable {
        let asset: OpenAsset
        let reader: FillLedger.ReaderID
        /// The bytes that were on disk when the read began.
        let cachedBefore: ByteRangeSet
    }

    /// The position in the plan and the figures of the read.
    struct State {
        var source: Source
        /// The segments of the plan that have not begun.
        var segments: ArraySlice<ContentPlan.Segment>
        /// The rest of the current segment; nil between segments.
        var run: ByteRange?
        var tally = ReadTally()
        /// The bytes that have left and were fetched while the read ran.
        var filled = ByteRangeSet()
        /// The parts of the body that were handed out and have not left, in order.
        var unsent: [ContentPlan.Segment] = []
        var isFinished = false
        /// The last bytes that have left.
        var lastSent: ByteRange?
        /// A contiguous run that was read and is not in the access trace yet.
        var unlogged: ByteRange?
        /// A result or an error that arrived after `.later` was returned; the next call consumes it.
        var late: Result<(chunk: ByteRange, bytes: ByteBuffer), CacheError>?
        /// Whether the response has a digest of this generation. Then no other one may continue it.
        var isDigested = false
        /// How often the file returned bytes that could not be used.
        var badCount = 0

        /// Counts the next `count` bytes that were handed out. Returns their sources.
        mutating func send(_ count: Int64) -> ReadTally {
            var (left, sent) = (count, ReadTally())
            while left > 0, let part = unsent.first {
                switch part {
                case .text(let glue) where left < glue.count:
                    unsent[0] = .text(Array(glue.dropFirst(Int(left))))
                    left = 0
                case .text(let glue):
                    unsent.removeFirst()
                    left -= Int64(glue.count)
                case .bytes(let chunk):
                    let piece = chunk.prefix(left)
                    if piece.length < chunk.length {
                        unsent[0] = .bytes(piece.upperBound..<chunk.upperBound)
                    } else {
                        unsent.removeFirst()
                    }
                    left -= piece.length
                    lastSent =
                        (lastSent?.upperBound == piece.lowerBound ? lastSent?.lowerBound : nil)
                        .map { $0..<piece.upperBound } ?? piece
                    let cached = source.cachedBefore.runs(in: piece).byteCount
                    if cached < piece.length {
                        for gap in source.cachedBefore.gaps(in: piece) { filled.insert(gap) }
                    }
                    sent.bytesFromCache += cached
                    sent.bytesAfterFill += piece.length - cached
                }
            }
            tally.bytesFromCache += sent.bytesFromCache
            tally.bytesAfterFill += sent.bytesAfterFill
            return sent
        }

        /// Appends `chunk` to the run that becomes one entry of the access trace. Returns the previous run if it is
        /// complete: if `chunk` does not continue it, or begins in another chunk of the trace.
        mutating func log(_ chunk: ByteRange) -> ByteRange? {
            guard let run = unlogged, run.upperBound == chunk.lowerBound,
                run.lowerBound / ReadTrace.chunkBytes == chunk.lowerBound / ReadTrace.chunkBytes
            else {
                defer { unlogged = chunk }
                return unlogged
            }
            unlogged = run.lowerBound..<chunk.upperBound
            return nil
        }
    }

    /// The result of a call that does not wait.
    package enum ReadStep: Sendable {
        /// Bytes in memory.
        case bytes(ByteBuffer)
        /// Bytes that the kernel can send from the file.
        case file(FilePiece)
        /// The body is complete.
        case end
        /// Nothing is available now; `wake` will be called.
        case later

        package var isAtHand: Bool { if case .later = self { false } else { true } }
    }

    /// The requested asset; with a fallback, not the asset that supplies the bytes.
    package let assetID: AssetID
    package let originName: String
    private let key: String
    package let access: OriginSettings.Access
    package let plan: ContentPlan
    package let outcome: ReadOutcome
    /// The age of the stored response, for the `Age` field (RFC 9111 §5.1); nil if no such field is sent.
    package let age: Duration?
    /// A snapshot for later requests that differ only in their range; nil if they cannot be served from one.
    package let view: FreshAssetSnapshot?
    /// Guards the source, the position in the plan, the figures and the late result.
    let state: OrderedMutex<State>

    var source: Source { state.withLock { $0.source } }
    var asset: OpenAsset { source.asset }
    private var reader: FillLedger.ReaderID { source.reader }
    private var cachedBefore: ByteRangeSet { source.cachedBefore }

    /// Consumes the hold on `asset` and the `reader`; `finish` releases both. `asked`: the requested target, if
    /// another asset supplies the bytes.
    init(
        asset: OpenAsset, reader: FillLedger.ReaderID, plan: ContentPlan, outcome: ReadOutcome, age: Duration?,
        cachedBefore: ByteRangeSet, asked: AssetTarget? = nil, view: FreshAssetSnapshot? = nil
    ) {
        let target = asked ?? asset.target
        assetID = target.id
        (originName, key) = (target.originName, target.key)
        access = target.settings.effectiveAccess
        self.plan = plan
        self.outcome = outcome
        self.age = age
        self.view = view
        let source = Source(asset: asset, reader: reader, cachedBefore: cachedBefore)
        state = OrderedMutex(.leaf, State(source: source, segments: plan.body[...]))
        asset.context.live.readers(1, of: assetID)
    }

    deinit { release() }

    /// The requested asset in logs.
    package var assetName: AssetName { AssetName(id: assetID, key: key, origin: originName) }

    /// Whether all needed bytes were on disk when the read began, so that the client causes no fetch.
    package var isWhollyCached: Bool { cachedBefore.byteCount == plan.neededBytes }

    /// Returns a read that serves these bytes as the response to a request for `target`. The hold and the reader move
    /// to the new read; this one is finished. Throws `.conflict` if the plan is not a complete representation.
    func standingIn(for target: AssetTarget, as outcome: ReadOutcome) throws(CacheError) -> ContentRead {
        guard let plan = plan.standingIn else {
            release()
            throw CacheError(.conflict, "The fallback is not a complete 200 response without Content-Encoding.")
        }
        state.withLock { $0.isFinished = true }
        asset.context.live.readers(-1, of: assetID)
        return ContentRead(
            asset: asset, reader: reader, plan: plan, outcome: outcome, age: nil, cachedBefore: cachedBefore,
            asked: target)
    }

    /// The next bytes of the body, at most `most`, including multipart delimiters; nil at the end.
    ///
    /// Throws if the bytes can no longer be obtained; the response must then be cut off. A call states that the bytes
    /// returned before have been sent.
    package func next(atMost most: Int64 = Int64(ByteBufferPool.chunkBytes)) async throws(CacheError) -> ByteBuffer? {
        sent(.max)
        while true {
            if let run = state.withLock({ $0.run }) {
                asset.advance(reader, to: run.lowerBound, isPlayer: plan.status == 206)
                if let buffer = try await read(run, most) { return buffer }
                state.withLock { $0.run = nil }
            }
            switch nextSegment() {
            case .text(let glue)?: return handOut(glue)
            case .bytes?: continue
            case nil: return nil
            }
        }
    }

    /// The form of `next` for an event loop. Returns `.later` if no bytes are available; `wake` is then called once,
    /// on any thread, when the caller should ask again. `fromFile`: whether large runs may be returned as pieces of
    /// the file.
    package func nextWithoutBlocking(
        fromFile: Bool, wake: @escaping @Sendable () -> Void
    ) throws(CacheError) -> ReadStep {
        let late = state.withLock { $0.late.take() }
        if let (chunk, bytes) = try late?.get() {
            took(chunk)
            return .bytes(bytes)
        }
        while true {
            if let run = state.withLock({ $0.run }) {
                asset.advance(reader, to: run.lowerBound, isPlayer: plan.status == 206)
                let turn = try readIfCached(run, fromFile: fromFile, wake: wake)
                guard case .end = turn else { return turn }
                state.withLock { $0.run = nil }
            }
            switch nextSegment() {
            case .text(let glue)?: return .bytes(handOut(glue))
            case .bytes?: continue
            case nil: return .end
            }
        }
    }

    /// Returns the memory of a buffer that was handed out and has been sent.
    package func giveBack(_ buffer: ByteBuffer) { asset.context.diskThreads.giveBack(buffer) }

    /// Dequeues the next segment of the plan. If it consists of asset bytes, requests them from the ledger, together
    /// with the later segments.
    private func nextSegment() -> ContentPlan.Segment? {
        let (segment, later) = state.withLock { state in
            (state.segments.popFirst(), state.segments.compactMap(\.range))
        }
        if case .bytes(let range)? = segment {
            asset.want(range, by: reader, later: later)
            state.withLock { $0.run = range }
        }
        return segment
    }

    /// Counts the next `count` bytes of the body, in the order in which they were handed out: they have left for the
    /// client.
    package func sent(_ count: Int64) {
        let tally = state.withLock { $0.send(count) }
        guard !outcome.isForPeer else { return }
        asset.context.readPoints.note(
            state.withLock { state in
                defer { state.lastSent = state.lastSent.map { $0.upperBound..<$0.upperBound } }
                return state.lastSent
            }, of: assetID, length: asset.look { $0.record?.generation.length })
        asset.context.live.sent(fromCache: tally.bytesFromCache, fromUpstream: tally.bytesAfterFill, of: assetID)
    }

    /// Hands out a part of a multipart body that is no content.
    private func handOut(_ glue: [UInt8]) -> ByteBuffer {
        state.withLock { $0.unsent.append(.text(glue)) }
        return ByteBuffer(bytes: glue)
    }

    /// Releases the asset and counts the read, on the first call only. Returns the figures of the read. With `.sent`,
    /// all bytes that were handed out have left.
    @discardableResult
    package func finish(_ ending: ReadEnding) -> ReadTally {
        if case .sent = ending { sent(.max) }
        var (tally, filled) = state.withLock { ($0.tally, $0.filled) }
        tally.bytesFromPeers = asset.bytesOfPeers(in: filled)
        guard release() else { return tally }
        // Before the first byte, a failure is answered with a problem document.
        let isProblem = if case .failed = ending { tally.bytesFromCache + tally.bytesAfterFill == 0 } else { false }
        let isAborted =
            switch ending {
            case .clientGone: true
            case .failed(let error): error.code == .cancelled
            case .sent: false
            }
        guard !outcome.isForPeer else {
            asset.context.counters.sentToPeer(tally.bytesFromCache + tally.bytesAfterFill, origin: originName)
            return tally
        }
        asset.context.counters.ended(
            isProblem ? .error : outcome.requestClass, of: asset.isForeign ? nil : asset.id, key: asset.target.key,
            origin: originName, sent: tally, isAborted: isAborted)
        guard !asset.isForeign else { return tally }
        if let run = state.withLock({ $0.unlogged }) { asset.context.traceRecorder.note(run, of: asset.id) }
        asset.context.commits.touched(
            asset.id, at: asset.context.wallClock.now(), hits: outcome.requestClass == .hit ? 1 : 0)
        return tally
    }

    /// Releases the asset without counting a request, because the request is served in another form.
    package func abandon() { release() }

    /// Releases the reader and the asset on the first call. Returns whether this was the first call.
    @discardableResult
    private func release() -> Bool {
        let isFirst = state.withLock { state in
            defer { state.isFinished = true }
            return !state.isFinished
        }
        guard isFirst else { return false }
        let source = source
        source.asset.context.live.readers(-1, of: assetID)
        source.asset.leave(source.reader)
        source.asset.closeIfForeign()
        source.asset.context.openAssets.release(source.asset)
        return true
    }

    /// Waits for the next bytes of `run`, reads and, if needed, verifies them; nil at the end of the asset. Bytes that
    /// fail the check, or were evicted during the read, are awaited again.
    private func read(_ run: ByteRange, _ most: Int64) async throws(CacheError) -> ByteBuffer? {
        while true {
            guard case .bytes(let present) = try await nextPresence(), let file = asset.look({ $0.file }) else {
                try checkEnd(run)
                return nil
            }
            var chunk = present.prefix(most)
            if let part = asset.toCheck(chunk) { chunk = part }
            guard let buffer = try await bytes(chunk, of: file) else { continue }
            took(chunk)
            return buffer
        }
    }

    /// The next bytes of `run` if they are available without waiting. Otherwise starts the disk operation or registers
    /// for the ledger's notification, and returns `.later`.
    private func readIfCached(
        _ run: ByteRange, fromFile: Bool, wake: @escaping @Sendable () -> Void
    ) throws(CacheError) -> ReadStep {
        let presence: FillLedger.Presence
        do throws(CacheError) {
            presence = try asset.presence(of: reader) { [self] in woken($0, wake: wake) }
        } catch  where error.code == .assetChanged {
            moveOn(after: error, wake: wake)
            return .later
        }
        guard presence != .pending else { return .later }
        guard case .bytes(let present) = presence, let file = asset.look({ $0.file }) else {
            try checkEnd(run)
            return .end
        }
        if let part = asset.toCheck(present.prefix(FilePiece.mostBytes)) {
            readOnDiskThread(part, of: file, wake: wake)
            return .later
        }
        if fromFile, let piece = piece(of: present, in: run, file) { return .file(piece) }
        let chunk = present.prefix(Int64(ByteBufferPool.chunkBytes))
        if let bytes = asset.context.diskThreads.readFromPageCache(chunk, of: file) {
            took(chunk)
            return .bytes(bytes)
        }
        asset.context.diskThreads.read(chunk, of: file) { [self] result in
            finishLate(chunk, of: file, result.map { $0 }, wake: wake)
        }
        return .later
    }

    /// Reserves a run of the file for the kernel to send. Nil if the bytes must be copied: the run is short, the file
    /// is not the store's own, or the file cannot be pinned.
    private func piece(of present: ByteRange, in run: ByteRange, _ file: SparseFile) -> FilePiece? {
        // A foreign file may be truncated meanwhile; the kernel would then be asked for the missing bytes forever.
        guard !asset.isForeign, present.length >= FilePiece.leastBytes else { return nil }
        let isLast = present.upperBound >= run.upperBound
        let range = present.prefix(isLast ? FilePiece.mostBytes : FilePiece.mostFilledBytes)
        guard let pin = file.pinForSendfile(range) else { return nil }
        took(range)
        return FilePiece(range: range, pin: pin)
    }

    /// Advances past `chunk`, handed out: updates the access trace and the eviction policy.
    private func took(_ chunk: ByteRange) {
        let cached = cachedBefore.runs(in: chunk)
        let past = state.withLock { state in
            state.run = state.run.map { chunk.upperBound..<$0.upperBound }
            state.unsent.append(.bytes(chunk))
            return state.log(chunk)
        }
        if let past, !asset.isForeign, !outcome.isForPeer { asset.context.traceRecorder.note(past, of: asset.id) }
        // Bytes that were fetched for this reader, or during its read, are no use of cached data.
        for run in cached { asset.wasRead(run, at: asset.context.wallClock.now()) }
    }

    /// Throws unless the asset may end here: the run is exhausted, or the length was unknown when the run began.
    private func checkEnd(_ run: ByteRange) throws(CacheError) {
        guard run.isEmpty || run.upperBound == .max else {
            throw CacheError(.upstreamProtocol, "The upstream's content ended before the announced length.")
        }
    }
}
