extension SpaceLedger {
    /// What happens to segments.
    enum Event: Sendable {
        case arrived(ByteRange, AssetID, Timestamp)
        case read(ByteRange, AssetID, Timestamp)
        case gone(ByteRange, AssetID)
        case counted(ByteRangeSet, AssetID, lastUse: Timestamp)
    }

    /// Puts other settings in force. Another algorithm or grid of segments needs a rebuilding, which may take a while, and
    /// need not be waited for:
    ///
    /// 1. `beginRebuilding` gives a copy, and the ledger goes on, keeping a journal;
    /// 2. the copy is `rebuilt`, without the lock;
    /// 3. `finishRebuilding` plays the journal on what came of it, and takes it over.
    package mutating func adopt(_ settings: PolicySettings) { self.settings = settings }

    /// Whether algorithm or grid are not those of the settings.
    private var isOutdated: Bool {
        algorithm != settings.algorithm || grid != SegmentGrid(capacity: settings.capacityBytes)
    }

    /// A copy to rebuild; nil where that is not needed, or under way.
    package mutating func beginRebuilding() -> SpaceLedger? {
        guard isOutdated, journal == nil else { return nil }
        defer { journal = [] }
        return self
    }

    /// The same segments under the settings' algorithm and grid, with the heat that is known of them.
    package func rebuilt() -> SpaceLedger {
        var new = SpaceLedger(settings: settings)
        for part in parts(on: new.grid) { new.take(part) }
        if algorithm == settings.algorithm, let hand {
            let index = new.grid.index(of: range(of: hand).lowerBound)
            new.policy.hand = new.policy.table.place(of: SegmentID(asset: hand.asset, index: index))
        }
        return new
    }

    /// Answers whether the bytes of some segments are guesses now, and must be counted; and the ledger whose place this one
    /// has taken, for to let go of many segments takes a while, too.
    package mutating func finishRebuilding(_ rebuilt: SpaceLedger) -> (isGuess: Bool, replaced: SpaceLedger) {
        var new = rebuilt
        new.settings = settings
        new.usedBytes = usedBytes
        new.freeDiskBytes = freeDiskBytes
        new.reservedBytes = reservedBytes
        new.pinned = pinned
        new.held = held
        new.heldBytes = heldBytes
        let isFiner = new.grid.segmentBytes < grid.segmentBytes
        for event in journal ?? [] { new.replay(event) }
        new.shares = shares
        new.recent = recent
        defer { self = new }
        return (isFiner, self)
    }

    private mutating func replay(_ event: Event) {
        switch event {
        case .arrived(let range, let asset, let now): arrived(range, of: asset, at: now)
        case .read(let range, let asset, let now): read(range, of: asset, at: now)
        case .gone(let range, let asset): gone(range, of: asset)
        case .counted(let extents, let asset, let lastUse): count(extents.runs, of: asset, lastUse: lastUse)
        }
    }

    /// A segment as it is taken over.
    fileprivate struct Part {
        let segment: SegmentID
        var bytes: Int64
        var standing: Standing
        var heat: Heat
    }

    private mutating func take(_ part: Part) {
        policy.restore(part.segment, bytes: part.bytes, standing: part.standing)
        guard let place = policy.table.place(of: part.segment) else { return }
        while heats.count <= place { heats.appendClosely(Heat()) }
        heats[place] = part.heat
    }

    /// In the order in which they are taken over: the policy's own, or for another algorithm that of their last use.
    private func parts(on grid: SegmentGrid) -> [Part] {
        var places = policy.places
        let isSame = algorithm == settings.algorithm
        if !isSame { places.sort { (heats[$0].lastUse, heats[$0].reads) < (heats[$1].lastUse, heats[$1].reads) } }
        let parts = places.map { place in
            Part(
                segment: policy.table.segment(at: place), bytes: policy.table.bytes(at: place),
                standing: isSame ? policy.standing(at: place) : Standing(heats[place]), heat: heats[place])
        }
        if grid.segmentBytes > self.grid.segmentBytes { return joined(parts, on: grid) }
        return grid.segmentBytes < self.grid.segmentBytes ? parts.flatMap { divided($0, on: grid) } : parts
    }

    /// Several become one, which has the place of the last, the best standing and the latest times.
    private func joined(_ parts: [Part], on grid: SegmentGrid) -> [Part] {
        var joined: [Part] = []
        var places: [SegmentID: Int] = [:]
        for part in parts.reversed() {
            let id = SegmentID(asset: part.segment.asset, index: grid.index(of: range(of: part.segment).lowerBound))
            if let place = places[id] {
                joined[place].add(part)
            } else {
                places[id] = joined.count
                joined.append(
                    Part(segment: id, bytes: part.bytes, standing: part.standing, heat: part.heat))
            }
        }
        return joined.reversed()
    }

    /// One becomes several with the standing of the whole. Where it was not full its bytes are taken to be the first.
    private func divided(_ part: Part, on grid: SegmentGrid) -> [Part] {
        let run = range(of: part.segment)
        return grid.indices(of: run).map { index in
            let before = grid.run(of: index).lowerBound - run.lowerBound
            return Part(
                segment: SegmentID(asset: part.segment.asset, index: index),
                bytes: min(max(0, part.bytes - before), grid.segmentBytes), standing: part.standing, heat: part.heat)
        }
    }
}

extension SpaceLedger.Part {
    fileprivate mutating func add(_ other: Self) {
        bytes += other.bytes
        standing.isProven = standing.isProven || other.standing.isProven
        standing.reads = max(standing.reads, other.standing.reads)
        if let priority = other.standing.priority { standing.priority = max(standing.priority ?? priority, priority) }
        heat.arrivedAt = max(heat.arrivedAt, other.heat.arrivedAt)
        heat.readAt = max(heat.readAt, other.heat.readAt)
        heat.reads = max(heat.reads, other.heat.reads)
    }
}

extension Standing {
    /// What another algorithm makes of a segment of which only the heat is known.
    fileprivate init(_ heat: SpaceLedger.Heat) {
        self.init(isProven: heat.reads > 0, reads: UInt16(clamping: heat.reads))
    }
}
