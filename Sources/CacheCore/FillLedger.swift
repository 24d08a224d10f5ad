/// Who fetches what of one generation, and who waits for it: the fill rules as a value.
///
/// It knows the extents, the fills in flight, the readers and the bytes that are just being evicted. Every change answers
/// with the actions its owner must carry out; the ledger itself does nothing.
package struct FillLedger: Sendable {
    package struct ReaderID: Hashable, Sendable { package let number: UInt64 }
    package struct FillID: Hashable, Sendable { package let number: UInt64 }

    /// What a fill asks the upstream for.
    package enum Wish: Hashable, Sendable {
        /// The first window of an asset nobody knows yet; its answer's head is the probe.
        case opening(UpstreamRequest.Window)
        /// Whether the generation is still the upstream's; no bytes are wanted.
        case confirmation
        /// Exactly these bytes.
        case window(ByteRange)
        /// The body from its first byte, because the upstream knows no ranges.
        case whole
    }

    package enum Action: Hashable, Sendable {
        /// Begin a transfer; `attempt` counts failures in a row, for the backoff.
        case start(FillID, Wish, TransferPriority, attempt: Int)
        /// Nobody wants what it brings any more.
        case cut(FillID)
        case promote(FillID, TransferPriority)
        /// The reader should look at its `presence` again.
        case wake(ReaderID)
        /// The reader cannot be served: the retries are spent.
        case fail(ReaderID, CacheError.Code)
    }

    /// How far a reader is served.
    package enum Presence: Hashable, Sendable {
        /// The asset is described and confirmed; the reader may say what it wants.
        case described
        /// These bytes, from the reader's position on, are on disk.
        case bytes(ByteRange)
        /// All that was wanted has been read.
        case end
        /// Nothing yet: the reader will be woken.
        case pending
    }

    package struct Settings: Hashable, Sendable {
        /// The size of a reader's first window; doubled with each further one.
        package var firstWindowBytes: Int64
        /// What windows grow to.
        package var largestWindowBytes: Int64
        /// Failures in a row, without a byte in between, that are tried again.
        package var retries: Int

        /// A window whose last reader has gone is brought to its end where no more than this is missing.
        package var finishIfRemainingBytes: Int64

        package init(
            firstWindowBytes: Int64 = 512 << 10, largestWindowBytes: Int64 = 8 << 20, retries: Int = 3,
            finishIfRemainingBytes: Int64 = 0
        ) {
            self.finishIfRemainingBytes = finishIfRemainingBytes
            self.firstWindowBytes = firstWindowBytes
            self.largestWindowBytes = max(firstWindowBytes, largestWindowBytes)
            self.retries = retries
        }
    }

    struct Fill {
        let id: FillID
        let wish: Wish
        var priority: TransferPriority
        /// The bytes it brings; empty until an opening's answer says which.
        var window: ByteRange
        /// The next byte it brings.
        var position: Int64
        var isDescribing: Bool
        /// Whether it was begun for nobody in particular, and is not cut when nobody waits.
        var isBehind = false
        /// How many bytes it has brought that were not there.
        var progress: Int64 = 0
        /// Whether that is enough to forget earlier failures: who gives up after each few bytes is not asked for ever.
        var hasProgressed: Bool { progress > 0 && progress >= min(64 << 10, window.length / 16) }
    }

    struct Reader {
        var priority: TransferPriority
        let opening: UpstreamRequest.Window
        /// What it wants, from its position on; nil until it has seen the description.
        var wanted: ByteRange?
        var needsConfirmation: Bool
        var isWaiting = false
        /// It has been told of a failure, and nothing is fetched for it unless it asks again.
        var isTold = false
        var nextWindowBytes: Int64
        var lastWindowBytes: Int64
    }

    package let settings: Settings
    package internal(set) var extents: ByteRangeSet
    /// Nil while the end is not known.
    package private(set) var length: Int64?
    /// False: ranges were ignored, or windows cannot be joined; one sequential transfer serves everybody.
    package private(set) var acceptsRanges: Bool?
    package private(set) var isDescribed: Bool
    var fills: [Fill] = []
    var readers: [ReaderID: Reader] = [:]
    /// Bytes that are being taken off the disk: neither present nor to be fetched until that is done.
    var leaving = ByteRangeSet()
    /// Failures in a row of what begins at a byte; under nil, of what begins where the upstream says.
    private var failures: [Int64?: Int] = [:]
    private var lastNumber: UInt64 = 0

    /// A ledger for an asset that nobody has described yet.
    package init(settings: Settings) {
        self.settings = settings
        extents = ByteRangeSet()
        isDescribed = false
    }

    /// A ledger for a generation that is known.
    package init(settings: Settings, length: Int64?, acceptsRanges: Bool?, extents: ByteRangeSet) {
        self.settings = settings
        self.length = length
        self.acceptsRanges = acceptsRanges
        self.extents = extents
        isDescribed = true
    }

    package var readerCount: Int { readers.count }
    package var fillCount: Int { fills.count }
    package var isComplete: Bool { length.map { extents.byteCount == $0 } ?? false }

    // MARK: Readers

    /// Takes a reader in. `opening` is what the first request asks for if the asset is not known yet.
    package mutating func join(
        opening: UpstreamRequest.Window, priority: TransferPriority, needsConfirmation: Bool
    ) -> (ReaderID, [Action]) {
        let id = ReaderID(number: nextNumber())
        let first = priority == .prefetch ? settings.largestWindowBytes : settings.firstWindowBytes
        readers[id] = Reader(
            priority: priority, opening: opening, needsConfirmation: needsConfirmation && isDescribed,
            nextWindowBytes: first, lastWindowBytes: priority == .prefetch ? 0 : first)
        let actions = describe(for: id)
        let isWaiting = readers[id].map { lookUp($0) == .pending } ?? false
        readers[id]?.isWaiting = isWaiting
        return (id, actions)
    }

    /// Says which bytes the reader wants next, in order; its asset must be described.
    package mutating func want(_ range: ByteRange, by id: ReaderID) -> [Action] {
        guard var reader = readers[id] else { return [] }
        let isSequential = reader.wanted?.lowerBound == range.lowerBound
        if !isSequential, reader.priority != .prefetch { reader.nextWindowBytes = settings.firstWindowBytes }
        reader.wanted = range
        readers[id] = reader
        return plan(for: id)
    }

    /// The reader has sent everything before `position`.
    package mutating func advance(_ id: ReaderID, to position: Int64) -> [Action] {
        guard var reader = readers[id], let wanted = reader.wanted else { return [] }
        reader.wanted = min(position, wanted.upperBound)..<wanted.upperBound
        readers[id] = reader
        return plan(for: id)
    }

    /// How far the reader is served; where the answer is `.pending` it counts as waiting from now on, and what it waits
    /// for is asked for, should a fill have broken since it asked last.
    package mutating func presence(for id: ReaderID) -> (Presence, [Action]) {
        guard let reader = readers[id] else { return (.end, []) }
        let presence = lookUp(reader)
        readers[id]?.isWaiting = presence == .pending
        readers[id]?.isTold = false
        return (presence, presence == .pending ? planOrDescribe(for: id) : [])
    }

    /// The reader is gone; fills that nobody wants any more are cut, but for those that are worth their end.
    package mutating func leave(_ id: ReaderID) -> [Action] {
        guard readers.removeValue(forKey: id) != nil else { return [] }
        if readers.isEmpty { failures = [:] }
        return fills.filter { !isWanted($0) && !isWorthFinishing($0) }.map { .cut($0.id) }
    }

    // MARK: Fills

    /// The answer's head says which bytes the fill brings, and how long the asset is. Everybody who waited for a
    /// description is woken.
    package mutating func began(
        _ id: FillID, window: ByteRange, length: Int64?, acceptsRanges: Bool?
    ) -> [Action] {
        guard let index = fills.firstIndex(where: { $0.id == id }) else { return [] }
        fills[index].window = window
        fills[index].position = window.lowerBound
        fills[index].isDescribing = false
        self.acceptsRanges = acceptsRanges ?? self.acceptsRanges
        return confirmed(length: length)
    }

    /// The generation is the upstream's, and of this length where that is known. Where it `isSequential` its bytes come in
    /// one transfer only.
    package mutating func confirmed(length: Int64?, isSequential: Bool = false) -> [Action] {
        // Who waits for bytes, and learns nothing new, sleeps on: woken, it would miss the failure that may come next.
        let isNews = !isDescribed || (self.length == nil && length != nil)
        self.length = length ?? self.length
        if isSequential { acceptsRanges = false }
        isDescribed = true
        for id in readers.keys { readers[id]?.needsConfirmation = false }
        return wakeWaiting { _ in isNews }
    }

    /// Begins to confirm the generation for nobody in particular, if that is not under way (RFC 5861 §3).
    package mutating func confirmBehind() -> [Action] {
        guard isDescribed, !fills.contains(where: { $0.wish == .confirmation }) else { return [] }
        return [start(.confirmation, window: 0..<0, priority: .readAhead, isBehind: true)]
    }

    /// The upstream has no byte from `end` on: the length, where none had been said.
    package mutating func foundEnd(at end: Int64) -> [Action] {
        guard isDescribed, length == nil else { return [] }
        length = end
        return wakeWaiting { _ in true }
    }

    /// The fill's bytes up to `position` are on disk.
    package mutating func arrived(_ id: FillID, upTo position: Int64) -> [Action] {
        guard let index = fills.firstIndex(where: { $0.id == id }), position > fills[index].position else { return [] }
        let arrival = fills[index].position..<position
        fills[index].position = position
        // Bytes that were there are no progress; bytes that are leaving go with those before them.
        for run in leaving.gaps(in: arrival) { fills[index].progress += extents.insert(run) }
        return wakeWaiting { arrival.contains($0.lowerBound) }
    }

    /// The fill brought all it was to bring; one of unknown length has now found the end.
    package mutating func completed(_ id: FillID) -> [Action] {
        guard let fill = take(id) else { return [] }
        failures[fill.wish.place] = nil
        if length == nil, fill.window.upperBound == .max { length = fill.position }
        return wakeWaiting { _ in true } + planForAll()
    }

    /// The fill ended early. Where another try makes sense it is planned anew from the next missing byte; otherwise
    /// everybody who depended on it is told.
    package mutating func broke(_ id: FillID, with code: CacheError.Code, isWorthRetrying: Bool) -> [Action] {
        guard let fill = take(id) else { return [] }
        guard code != .cancelled else { return planForAll() }
        if case .rangeNotSatisfiable = code, case .opening(let window) = fill.wish {
            return fail(code) { $0.opening == window && $0.wanted == nil } + planForAll()
        }
        let earlier = failures.removeValue(forKey: fill.wish.place) ?? 0
        let inARow = fill.hasProgressed ? 1 : earlier + 1
        if isWorthRetrying, inARow <= settings.retries {
            failures[fill.isDescribing || acceptsRanges == false ? nil : fill.position] = inARow
            return planForAll()
        }
        let ledger = self
        return fail(code) { !ledger.isAwaited($0) }
    }

    /// The fill broke on what has been put right: what it was to bring is planned anew, and the failure does not count.
    package mutating func renewed(_ id: FillID) -> [Action] {
        take(id) == nil ? [] : planForAll()
    }

    /// An administrator stops the fills; whoever waits for one is told `code`.
    package mutating func stopFills(because code: CacheError.Code) -> [Action] {
        fail(code) { _ in true } + fills.map { .cut($0.id) }
    }

    // MARK: Parts

    mutating func nextNumber() -> UInt64 {
        lastNumber += 1
        return lastNumber
    }

    func attempt(of wish: Wish) -> Int { failures[wish.place] ?? 0 }

    private mutating func take(_ id: FillID) -> Fill? {
        fills.firstIndex { $0.id == id }.map { fills.remove(at: $0) }
    }

    private mutating func fail(_ code: CacheError.Code, where concerns: (Reader) -> Bool) -> [Action] {
        let failed = readers.filter { $0.value.isWaiting && concerns($0.value) }.keys
        for id in failed {
            readers[id]?.isWaiting = false
            readers[id]?.isTold = true
        }
        return failed.map { .fail($0, code) }
    }

    private mutating func wakeWaiting(where concerns: (ByteRange) -> Bool) -> [Action] {
        var actions: [Action] = []
        for (id, reader) in readers where reader.isWaiting && reader.wanted.map(concerns) ?? true {
            readers[id]?.isWaiting = false
            actions.append(.wake(id))
        }
        return actions
    }
}
