extension PrefetchJob {
    /// The number of files of a live playlist that are remembered, the latest ones: more than a playlist can name at once.
    private static let mostRemembered = 10_000

    /// The files of a playlist or a list that the job has; the latest ones of a live playlist.
    func knownFiles(of index: Int) -> Set<JobItemRecord.Content> {
        guard let positions = files[index]?.positions else { return [] }
        let latest = record.items[index].followsLive ? positions.suffix(Self.mostRemembered) : positions[...]
        return Set(latest.map { record.items[$0].content })
    }

    /// Whether the item is a file of a live playlist.
    func isOfLive(_ index: Int) -> Bool {
        guard let parent = record.items[index].parent, record.items.indices.contains(parent) else { return false }
        return record.items[index].play == nil && record.items[parent].followsLive
    }

    /// The number of playlists above an item.
    func depth(of index: Int) -> Int {
        var (depth, item) = (0, index)
        while let parent = record.items[item].parent, record.items.indices.contains(parent), depth < Self.maxDepth {
            (depth, item) = (depth + 1, parent)
        }
        return depth
    }

    /// The error of the job: the first one of its items, with a count if there are several.
    func firstError(of state: JobState) -> RecordedError? {
        guard state != .succeeded else { return nil }
        guard let first = record.items.first(where: { $0.state == state })?.error else { return nil }
        guard tally[state] > 1 else { return first }
        return RecordedError(
            code: first.code, message: "\(tally[state]) of \(record.items.count) items; first error: \(first.message)")
    }
}
