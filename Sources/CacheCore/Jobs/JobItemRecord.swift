/// One asset of a job, and its wanted ranges.
///
/// A job has up to 100,000 items in memory, so that an item is small: the properties that many items share or few items have
/// are in memory of their own. Items of one request share their order (``JobItemOrder``).
package struct JobItemRecord: Hashable, Sendable {
    package var reference: AssetReference
    /// The ranges as the client wrote them, in the syntax of `Range`; empty: the whole asset.
    package var ranges: [String]
    private var order: SharedValue<JobItemOrder>?
    private var place: SharedValue<Place>?
    private var outcome: SharedValue<Outcome>?
    package var bytesFromCache: Int64
    package var bytesFromUpstream: Int64
    /// Zero if ``known`` does not contain it, as the halves of the identifier.
    private var total: Int64 = 0
    private var (high, low): (UInt64, UInt64) = (0, 0)
    package var state: JobState
    private var known: Known = []
    private var position: UInt32
    private var runs: UInt32

    /// The values that the item has.
    private struct Known: OptionSet, Hashable {
        let rawValue: UInt8
        static let total = Known(rawValue: 1)
        static let asset = Known(rawValue: 2)
    }

    /// The place of a file in a playlist or list.
    private struct Place: Hashable {
        var parent: Int
        var time: Range<Double>?
    }

    /// The values of items that play, wait or have failed.
    private struct Outcome: Hashable {
        var playResult: PlayResult?
        var wait: ItemWait?
        var error: RecordedError?
    }

    package init(
        index: Int, reference: AssetReference, ranges: [String] = [], tags: [String] = [], isPinned: Bool = false,
        state: JobState = .queued, assetID: AssetID? = nil, attempts: Int = 0, bytesTotal: Int64? = nil,
        bytesFromCache: Int64 = 0,
        bytesFromUpstream: Int64 = 0, error: RecordedError? = nil
    ) {
        self.reference = reference
        self.ranges = ranges
        self.bytesFromCache = bytesFromCache
        self.bytesFromUpstream = bytesFromUpstream
        self.state = state
        (position, runs) = (UInt32(clamping: index), UInt32(clamping: attempts))
        if !tags.isEmpty || isPinned { order = SharedValue(JobItemOrder(tags: tags, isPinned: isPinned)) }
        self.bytesTotal = bytesTotal
        self.assetID = assetID
        if error != nil { self.error = error }
    }
}

/// The part of an item that the items of one request have in common.
package struct JobItemOrder: Hashable, Sendable {
    /// The time span that the item makes playable; nil: it fetches bytes. Its ranges are resolved when it runs.
    package var play: PlayRequest?
    /// The files of the upstream that the item becomes when it runs; the reference is that of their folder. Nil: the item is
    /// one asset.
    package var list: ListSelection?
    /// Tags that the asset gets when all bytes of the item are on disk.
    package var tags: [String] = []
    /// Whether the asset is pinned at that time.
    package var isPinned = false

    package init(
        play: PlayRequest? = nil, list: ListSelection? = nil, tags: [String] = [], isPinned: Bool = false
    ) {
        (self.play, self.list, self.tags, self.isPinned) = (play, list, tags, isPinned)
    }
}

extension JobItemRecord {
    /// The position in the job, from 0.
    package var index: Int {
        get { Int(position) }
        set { position = UInt32(clamping: newValue) }
    }

    /// The number of runs.
    package var attempts: Int {
        get { Int(runs) }
        set { runs = UInt32(clamping: newValue) }
    }

    /// The size of the wanted ranges; nil until the asset's length is known.
    package var bytesTotal: Int64? {
        get { known.contains(.total) ? total : nil }
        set {
            total = newValue ?? 0
            if newValue == nil { known.remove(.total) } else { known.insert(.total) }
        }
    }

    /// Nil until the reference is resolved.
    package var assetID: AssetID? {
        get { known.contains(.asset) ? AssetID(high: high, low: low) : nil }
        set {
            (high, low) = (newValue?.high ?? 0, newValue?.low ?? 0)
            if newValue == nil { known.remove(.asset) } else { known.insert(.asset) }
        }
    }

    /// See ``JobItemOrder/play``.
    package var play: PlayRequest? {
        get { order?.value.play }
        set { change(&order, from: JobItemOrder()) { $0.play = newValue } }
    }

    /// See ``JobItemOrder/list``.
    package var list: ListSelection? {
        get { order?.value.list }
        set { change(&order, from: JobItemOrder()) { $0.list = newValue } }
    }

    /// See ``JobItemOrder/tags``.
    package var tags: [String] {
        get { order?.value.tags ?? [] }
        set { change(&order, from: JobItemOrder()) { $0.tags = newValue } }
    }

    /// See ``JobItemOrder/isPinned``.
    package var isPinned: Bool {
        get { order?.value.isPinned ?? false }
        set { change(&order, from: JobItemOrder()) { $0.isPinned = newValue } }
    }

    /// The position of the playlist or list that this item is a file of; nil: the client has ordered the item.
    package var parent: Int? {
        get { place?.value.parent }
        set { place = newValue.map { SharedValue(Place(parent: $0, time: place?.value.time)) } }
    }

    /// The presentation time that the item is needed for; nil without a parent.
    package var time: Range<Double>? {
        get { place?.value.time }
        set { place = place.map { SharedValue(Place(parent: $0.value.parent, time: newValue)) } }
    }

    /// The result of an item with ``play``.
    package var playResult: PlayResult? {
        get { outcome?.value.playResult }
        set { change(&outcome, from: Outcome()) { $0.playResult = newValue } }
    }

    /// The latest wait, without later progress; the present one in the state `waiting`.
    package var wait: ItemWait? {
        get { outcome?.value.wait }
        set { change(&outcome, from: Outcome()) { $0.wait = newValue } }
    }

    package var error: RecordedError? {
        get { outcome?.value.error }
        set { change(&outcome, from: Outcome()) { $0.error = newValue } }
    }

    /// Changes a value that takes no memory while it equals the initial one.
    private func change<Value: Hashable>(
        _ shared: inout SharedValue<Value>?, from initial: Value, _ body: (inout Value) -> Void
    ) {
        let present = shared?.value ?? initial
        var changed = present
        body(&changed)
        guard changed != present else { return }
        shared = changed == initial ? nil : SharedValue(changed)
    }

    package var bytesDone: Int64 { bytesFromCache + bytesFromUpstream }

    /// Whether the item fetches the bytes that its ranges name; their number is known with the length of the asset.
    package var fetchesRanges: Bool { play == nil && list == nil }

    /// Takes over the memory of equal values from another item of the same request.
    package mutating func share(with other: JobItemRecord) {
        if ranges == other.ranges { ranges = other.ranges }
        if order == other.order { order = other.order }
        guard case .mounted(let origin, let path, let key) = reference,
            case .mounted(let known, _, _) = other.reference, known == origin
        else { return }
        reference = .mounted(origin: known, path: path, key: key)
    }
}

/// An immutable value on the heap, so that its holder has the size of a pointer.
private final class SharedValue<Value: Hashable & Sendable>: Hashable, Sendable {
    let value: Value

    init(_ value: Value) { self.value = value }

    static func == (left: SharedValue, right: SharedValue) -> Bool { left === right || left.value == right.value }

    func hash(into hasher: inout Hasher) { hasher.combine(value) }
}
