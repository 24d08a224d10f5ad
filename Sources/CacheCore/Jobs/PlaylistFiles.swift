/// The files of an expanded playlist, for its playable time.
struct PlaylistFiles: Sendable {
    /// All items.
    private(set) var positions: [Int] = []
    /// Items with an index or a playlist of their own.
    private var indexed: [Int] = []
    /// The other items by their times, the latest first; without those that are known to have succeeded.
    private var pending: [Int] = []

    init(_ positions: [Int], in items: [JobItemRecord]) { add(positions, in: items) }

    /// Adds further items. Those of a live playlist have no times.
    mutating func add(_ added: [Int], in items: [JobItemRecord]) {
        guard !added.isEmpty else { return }
        positions += added
        indexed += added.filter { items[$0].play != nil }
        let others = added.filter { items[$0].play == nil && items[$0].time != nil }
        guard !others.isEmpty else { return }
        pending = (pending + others).sorted { items[$0].beginning > items[$1].beginning }
    }

    /// The position of the last item; -1 without one.
    var last: Int { positions.last ?? -1 }

    /// The presentation time up to which all files are on disk: the beginning of the first one that is not.
    mutating func playableEnd(in items: [JobItemRecord]) -> Double {
        while let last = pending.last, items[last].state == .succeeded { pending.removeLast() }
        let ends = indexed.map { items[$0].beginning + (items[$0].playResult?.playableSeconds ?? 0) }
        return (ends + [pending.last.map { items[$0].beginning } ?? .infinity]).min() ?? .infinity
    }
}

extension JobItemRecord {
    /// The bytes that the item names: its reference, with the ranges that the client or the playlist gave.
    package struct Content: Hashable, Sendable {
        package var reference: AssetReference
        package var ranges: [String]

        package init(reference: AssetReference, ranges: [String]) {
            (self.reference, self.ranges) = (reference, ranges)
        }
    }

    package var content: Content { Content(reference: reference, ranges: play == nil ? ranges : []) }

    /// Whether the item follows a live playlist until its end.
    package var followsLive: Bool { play?.isLive ?? false }

    /// The first presentation time that the item is needed for.
    var beginning: Double { time?.lowerBound ?? 0 }
}
