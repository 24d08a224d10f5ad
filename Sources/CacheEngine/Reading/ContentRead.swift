package import CacheCore
import CacheStore
package import NIOCore
import Synchronization

/// How a read came to its end.
package enum ReadEnding: Sendable {
    case sent
    /// The client hung up before the last byte.
    case clientGone
    case failed(CacheError)
}

/// What a read sent.
package struct ReadTally: Sendable {
    package var bytesFromCache: Int64 = 0
    package var bytesAfterFill: Int64 = 0
}

/// One reader: the plan of its answer, and the bytes, which are sent from the file as they become present.
package final class ContentRead: Sendable {
    /// Where its bytes come from.
    struct Source: Sendable {
        let asset: OpenAsset
        let reader: FillLedger.ReaderID
        /// The bytes that were on disk when the read began.
        let cachedBefore: ByteRangeSet
    }

    struct State {
        var source: Source
        var segments: ArraySlice<ContentPlan.Segment>
        /// What is left of the segment under way.
        var run: ByteRange?
        var tally = ReadTally()
        var isFinished = false
        /// Bytes in one piece that were read, and are not in the log yet.
        var unlogged: ByteRange?
        /// What somebody who was not waited for has brought.
        var late: Result<(chunk: ByteRange, bytes: ByteBuffer), CacheError>?
        /// How often bytes were found that could not be used.
        var badCount = 0

        /// Adds what was read to what goes into the log as one; answers what is to go there now.
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

    /// What can be had without waiting.
    package enum Turn: Sendable {
        case bytes(ByteBuffer)
        /// Bytes that the kernel can send from the file.
        case file(FilePiece)
        case end
        case later

        package var isAtHand: Bool { if case .later = self { false } else { true } }
    }

    package let assetID: AssetID
    package let originName: String
    package let access: OriginSettings.Access
    package let plan: ContentPlan
    package let outcome: ReadOutcome
    package let age: Duration?
    /// For answers that differ in their range alone.
    package let view: FreshView?
    let state: Mutex<State>

    var source: Source { state.withLock { $0.source } }
    var asset: OpenAsset { source.asset }
    private var reader: FillLedger.ReaderID { source.reader }
    private var cachedBefore: ByteRangeSet { source.cachedBefore }

    /// The read takes over the hold on `asset` and the `reader`; `finish` lets both go. `asked`: what the answer is for,
    /// where that is another asset.
    init(
        asset: OpenAsset, reader: FillLedger.ReaderID, plan: ContentPlan, outcome: ReadOutcome, age: Duration?,
        cachedBefore: ByteRangeSet, asked: AssetTarget? = nil, view: FreshView? = nil
    ) {
        let target = asked ?? asset.target
        assetID = target.id
        originName = target.originName
        access = target.settings.effectiveAccess
        self.plan = plan
        self.outcome = outcome
        self.age = age
        self.view = view
        let source = Source(asset: asset, reader: reader, cachedBefore: cachedBefore)
        state = Mutex(State(source: source, segments: plan.body[...]))
    }

    deinit { letGo() }

    /// Whether all of it was on disk when the read began: nothing is fetched because a client takes it.
    package var isWhollyCached: Bool { cachedBefore.byteCount == plan.neededBytes }

    /// This read as the answer to a request for `target`; it passes its hold and its reader on, and is over. Throws
    /// `.conflict` where it has not the whole to give.
    func standingIn(for target: AssetTarget, as outcome: ReadOutcome) throws(CacheError) -> ContentRead {
        guard let plan = plan.standingIn else {
            letGo()
            throw CacheError(.conflict, "The fallback was not answered as a whole.")
        }
        state.withLock { $0.isFinished = true }
        return ContentRead(
            asset: asset, reader: reader, plan: plan, outcome: outcome, age: nil, cachedBefore: cachedBefore,
            asked: target)
    }

    /// The next bytes of the body, at most `most`, glue included; nil at its end.
    ///
    /// Throws where they cannot be had any more; the answer must then be cut off. What was returned before counts as
    /// sent when this is called.
    package func next(atMost most: Int64 = Int64(ChunkShelf.chunkBytes)) async throws(CacheError) -> ByteBuffer? {
        while true {
            if let run = state.withLock({ $0.run }) {
                asset.advance(reader, to: run.lowerBound)
                if let buffer = try await read(run, most) { return buffer }
                state.withLock { $0.run = nil }
            }
            switch nextSegment() {
            case .text(let glue)?: return ByteBuffer(bytes: glue)
            case .bytes?: continue
            case nil: return nil
            }
        }
    }

    /// As `next`, for those who cannot wait: `.later` where the bytes are not at hand, and `wake` is called once, on any
    /// thread, when it is time to ask again. `fromFile`: whether many bytes may be left in the file.
    package func nextAtOnce(
        fromFile: Bool, wake: @escaping @Sendable () -> Void
    ) throws(CacheError) -> Turn {
        let late = state.withLock { $0.late.take() }
        if let (chunk, bytes) = try late?.get() {
            took(chunk)
            return .bytes(bytes)
        }
        while true {
            if let run = state.withLock({ $0.run }) {
                asset.advance(reader, to: run.lowerBound)
                let turn = try readAtOnce(run, fromFile: fromFile, wake: wake)
                guard case .end = turn else { return turn }
                state.withLock { $0.run = nil }
            }
            switch nextSegment() {
            case .text(let glue)?: return .bytes(ByteBuffer(bytes: glue))
            case .bytes?: continue
            case nil: return .end
            }
        }
    }

    /// What was handed out has left: its memory is used again.
    package func takeBack(_ buffer: ByteBuffer) { asset.context.diskThreads.takeBack(buffer) }

    /// What comes next; bytes of the asset are said to be wanted.
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

    /// Lets go of everything and counts the read, once.
    @discardableResult
    package func finish(_ ending: ReadEnding) -> ReadTally {
        let tally = state.withLock { $0.tally }
        guard letGo() else { return tally }
        // A failure before the first byte is answered with a problem.
        let isProblem = if case .failed = ending { tally.bytesFromCache + tally.bytesAfterFill == 0 } else { false }
        let isAborted =
            switch ending {
            case .clientGone: true
            case .failed(let error): error.code == .cancelled
            case .sent: false
            }
        asset.context.counters.ended(
            isProblem ? .error : outcome.requestClass, of: asset.isForeign ? nil : asset.id, key: asset.target.key,
            origin: originName, sent: tally, isAborted: isAborted)
        guard !asset.isForeign else { return tally }
        if let run = state.withLock({ $0.unlogged }) { asset.context.readLog.note(run, of: asset.id) }
        asset.context.commits.touched(
            asset.id, at: asset.context.wallClock.now(), hits: outcome.requestClass == .hit ? 1 : 0)
        return tally
    }

    /// Lets go without counting a request: somebody else answers it.
    package func abandon() { letGo() }

    /// Lets go of the reader and the asset, once; answers whether this was the time.
    @discardableResult
    private func letGo() -> Bool {
        let isFirst = state.withLock { state in
            defer { state.isFinished = true }
            return !state.isFinished
        }
        guard isFirst else { return false }
        let source = source
        source.asset.leave(source.reader)
        source.asset.closeIfForeign()
        source.asset.context.openAssets.release(source.asset)
        return true
    }

    private func read(_ run: ByteRange, _ most: Int64) async throws(CacheError) -> ByteBuffer? {
        while true {
            guard case .bytes(let present) = try await settle(), let file = asset.look({ $0.file }) else {
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

    private func readAtOnce(
        _ run: ByteRange, fromFile: Bool, wake: @escaping @Sendable () -> Void
    ) throws(CacheError) -> Turn {
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
            readLate(part, of: file, wake: wake)
            return .later
        }
        if fromFile, let piece = piece(of: present, in: run, file) { return .file(piece) }
        let chunk = present.prefix(Int64(ChunkShelf.chunkBytes))
        if let bytes = asset.context.diskThreads.readNow(chunk, of: file) {
            took(chunk)
            return .bytes(bytes)
        }
        asset.context.diskThreads.read(chunk, of: file) { [self] result in
            finishLate(chunk, of: file, result.map { $0 }, wake: wake)
        }
        return .later
    }

    /// Bytes that need not be copied; nil where they must be.
    private func piece(of present: ByteRange, in run: ByteRange, _ file: SparseFile) -> FilePiece? {
        // A file that is not the store's may become shorter, and the kernel would be asked for its bytes for ever.
        guard !asset.isForeign, present.length >= FilePiece.leastBytes else { return nil }
        let isLast = present.upperBound >= run.upperBound
        let range = present.prefix(isLast ? FilePiece.mostBytes : FilePiece.mostFilledBytes)
        guard let loan = file.lendNow(range) else { return nil }
        took(range)
        return FilePiece(range: range, loan: loan)
    }

    /// Bytes of the run have been read.
    private func took(_ chunk: ByteRange) {
        let cached = cachedBefore.runs(in: chunk)
        let fromCache = cached.byteCount
        let past = state.withLock { state in
            state.run = state.run.map { chunk.upperBound..<$0.upperBound }
            state.tally.bytesFromCache += fromCache
            state.tally.bytesAfterFill += chunk.length - fromCache
            return state.log(chunk)
        }
        if let past, !asset.isForeign { asset.context.readLog.note(past, of: asset.id) }
        // What came for this reader, or while it read, is no use of what was there.
        for run in cached { asset.wasRead(run, at: asset.context.wallClock.now()) }
    }

    private func checkEnd(_ run: ByteRange) throws(CacheError) {
        guard run.isEmpty || run.upperBound == .max else {
            throw CacheError(.upstreamProtocol, "The asset ended before the bytes that were promised.")
        }
    }
}
