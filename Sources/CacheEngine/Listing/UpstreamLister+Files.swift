import CacheCore

/// The files of a list: a walk through the folders of an upstream.
extension UpstreamLister {
    /// The files that a selection has found.
    struct Selection: Sendable {
        /// Their references are paths below the mount, in the order of the walk.
        var files: [ListingEntry] = []
        /// The number of entries that the listings contain, folders included.
        var entries = 0
        /// The entries that lie elsewhere.
        var skippedEntries = 0
    }

    /// The size of the listings of a walk, or of several.
    struct Totals {
        /// The number of entries, folders included.
        var entries = 0
        /// The number of bytes of the responses.
        var bytes = 0
        /// The number of responses.
        var responses = 0
    }

    /// A file of a list.
    struct File: Sendable {
        /// The item that fetches it; the job assigns its position.
        var item: JobItemRecord
        /// The length that the listing states.
        var bytes: Int64?
    }

    /// The largest number of entries of all listings together.
    private static let mostEntries = 100_000
    /// The largest number of bytes of all listings together.
    private static let mostBytes = 64 << 20
    /// The longest time.
    static let timeout = Duration.seconds(600)
    /// The largest number of responses, and of folders that wait for their listing.
    private static let mostFolders = 10_000

    /// Lists the folder or document, and with `isRecursive` the folders below it; of a playlist those of all renditions.
    ///
    /// Throws as ``page(_:)``, and `.jobTooLarge` above a total: 100,000 entries, 64 MiB, `limit` files, 10,000 responses or
    /// waiting folders; `.upstreamForbidden` if all entries lie elsewhere; `.upstreamUnusable` for a listing without an end.
    private func walk(
        _ selection: ListSelection, origin: String, path: String, of owner: TokenOwner?, totals: inout Totals
    ) async throws(CacheError) -> Selection {
        let isWanted = selection.filter(below: path, at: wallClock.now())
        var found = Selection()
        var folders = [path]
        var (seen, files): (Set<String>, Set<String>) = ([path], [path])
        while let folder = folders.popLast() {
            var request = ListingRequest(
                origin: origin, path: folder, format: selection.format, pointer: selection.pointer,
                limit: Self.pageEntries)
            // The parts of the folder, and the entries of the last one.
            var (places, entries): (Set<String>, [ListingEntry]) = ([], [])
            repeat {
                let page = try await page(request)
                totals.bytes += page.responseBytes
                totals.responses += 1
                totals.entries += page.entries.count
                found.entries += page.entries.count
                found.skippedEntries += page.skippedEntries
                // The renditions of a playlist can share files.
                found.files += page.entries.filter { entry in
                    isWanted(entry) && (page.format != .playlist || files.insert(entry.reference).inserted)
                }
                // The playlist itself is a file, too; those of its renditions are entries.
                if page.format == .playlist, folder == path {
                    found.files += [ListingEntry(reference: path)].filter(isWanted)
                }
                folders += page.below(selection).filter { reference in
                    Self.permits(reference, of: origin, to: owner) && seen.insert(reference).inserted
                }.reversed()
                try check(found, totals, waiting: folders.count, limit: selection.limit)
                // Other listings are complete.
                let next = page.format.isPaged ? page.nextCursor : nil
                guard next.map({ places.insert($0).inserted }) ?? true else {
                    throw CacheError(.upstreamUnusable(), "The listing does not end: its next part is the same one.")
                }
                guard next == nil || page.entries.isEmpty || page.entries != entries else {
                    throw CacheError(.upstreamUnusable(), "The listing does not end: its parts have the same entries.")
                }
                entries = page.entries
                (request.cursor, request.format) = (next, page.format)
            } while request.cursor != nil
        }
        guard found.entries > 0 || found.skippedEntries == 0 else {
            throw CacheError(
                .upstreamForbidden, "All \(found.skippedEntries) entries of the listing lie outside of the origin.")
        }
        return found
    }

    /// Whether a folder or playlist that a document names lies inside the limits of the token.
    private static func permits(_ path: String, of origin: String, to owner: TokenOwner?) -> Bool {
        guard let owner else { return true }
        return (try? owner.check(.mounted(origin: origin, path: path, key: nil))) != nil
    }

    /// Throws `.jobTooLarge` above a total.
    private func check(_ found: Selection, _ totals: Totals, waiting: Int, limit: Int) throws(CacheError) {
        let excess: String? =
            if found.files.count > limit {
                "selects more than \(limit) files: select fewer by include, or raise limit"
            } else if totals.entries > Self.mostEntries {
                "has more than \(Self.mostEntries) entries: name a folder below"
            } else if totals.bytes > Self.mostBytes {
                "has more than 64 MiB of listings: name a folder below"
            } else if max(waiting, totals.responses) > Self.mostFolders {
                "has more than \(Self.mostFolders) folders: name a folder below"
            } else {
                nil
            }
        if let excess { throw CacheError(.jobTooLarge, "The list \(excess).") }
    }

    /// The items that fetch the files of a list; the job assigns their positions.
    func items(of list: JobItemRecord, for owner: TokenOwner?) async throws(CacheError) -> [JobItemRecord] {
        try await withDeadline(Self.timeout, .total, clock: clock) { () async throws(CacheError) in
            var totals = Totals()
            return try await items(of: list, for: owner, totals: &totals).files.map(\.item)
        }
    }

    /// The files of a list, and the number of entries that lie elsewhere, without a limit of time. The limits of size apply to
    /// `totals`, to which the listings are added.
    func items(
        of list: JobItemRecord, for owner: TokenOwner?, totals: inout Totals
    ) async throws(CacheError) -> (files: [File], skippedEntries: Int) {
        guard let selection = list.list, case .mounted(let origin, let path, _) = list.reference else {
            throw CacheError(.internal, "The item has no list.")
        }
        let found = try await walk(selection, origin: origin, path: path, of: owner, totals: &totals)
        let files = found.files.map { file in
            var item = JobItemRecord(
                index: 0, reference: .mounted(origin: origin, path: file.reference, key: nil), tags: list.tags,
                isPinned: list.isPinned)
            (item.parent, item.play) = (list.index, list.play)
            return File(item: item, bytes: file.bytes)
        }
        return (files, found.skippedEntries)
    }
}

extension ListingPage {
    /// The folders and playlists that are listed next.
    fileprivate func below(_ selection: ListSelection) -> [String] {
        if format == .playlist { return listsPlaylists ? entries.map(\.reference) : [] }
        guard selection.isRecursive, format.isOfFolder || format == .json else { return [] }
        return entries.filter(\.isFolder).map(\.reference)
    }
}
