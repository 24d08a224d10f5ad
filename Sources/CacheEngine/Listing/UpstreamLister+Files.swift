package import CacheCore

/// The files of a list: a walk through the folders of an upstream.
extension UpstreamLister {
    /// The files that a selection has found.
    package struct Selection: Sendable {
        /// Their references are paths below the mount, in the order of the walk.
        package var files: [ListingEntry] = []
        /// The number of entries that the listings contain, folders included.
        package var entries = 0
        /// The entries that lie elsewhere.
        package var skippedEntries = 0
    }

    /// The largest number of entries of all listings together.
    private static let mostEntries = 100_000
    /// The largest number of bytes of all listings together.
    private static let mostBytes = 64 << 20
    /// The longest time.
    private static let timeout = Duration.seconds(600)
    /// The largest number of responses, and of folders that wait for their listing.
    private static let mostFolders = 10_000

    /// Lists the folder or document, and with `isRecursive` the folders below it.
    ///
    /// Throws as ``page(_:)``, and `.jobTooLarge` above a total: 100,000 entries, 64 MiB, `limit` files, 10,000 responses or
    /// waiting folders; `.upstreamTimedOut` after 10 minutes; `.upstreamForbidden` if all entries lie elsewhere;
    /// `.upstreamUnusable` for a listing without an end.
    package func select(
        _ selection: ListSelection, origin: String, path: String
    ) async throws(CacheError) -> Selection {
        try await withDeadline(Self.timeout, .total, clock: clock) { () async throws(CacheError) in
            try await walk(selection, origin: origin, path: path)
        }
    }

    private func walk(
        _ selection: ListSelection, origin: String, path: String
    ) async throws(CacheError) -> Selection {
        let isWanted = selection.filter(below: path, at: wallClock.now())
        var (found, bytes, responses) = (Selection(), 0, 0)
        var folders = [path]
        var seen: Set<String> = [path]
        while let folder = folders.popLast() {
            var request = ListingRequest(
                origin: origin, path: folder, format: selection.format, pointer: selection.pointer,
                limit: Self.pageEntries)
            repeat {
                let page = try await page(request)
                bytes += page.responseBytes
                responses += 1
                found.entries += page.entries.count
                found.skippedEntries += page.skippedEntries
                found.files += page.entries.filter(isWanted)
                if selection.isRecursive, page.format.isOfFolder || page.format == .json {
                    let below = page.entries.filter(\.isFolder).map(\.reference).filter { seen.insert($0).inserted }
                    folders += below.reversed()
                }
                try check(found, bytes: bytes, folders: max(folders.count, responses), limit: selection.limit)
                // Only stores are asked for parts; other listings are complete.
                let next = page.format == .s3 ? page.nextCursor : nil
                guard next == nil || next != request.cursor else {
                    throw CacheError(.upstreamUnusable(), "The listing does not end: its next part is the same one.")
                }
                (request.cursor, request.format) = (next, page.format)
            } while request.cursor != nil
        }
        guard !found.files.isEmpty || found.entries > 0 || found.skippedEntries == 0 else {
            throw CacheError(
                .upstreamForbidden, "All \(found.skippedEntries) entries of the listing lie outside of the origin.")
        }
        return found
    }

    /// Throws `.jobTooLarge` above a total.
    private func check(_ found: Selection, bytes: Int, folders: Int, limit: Int) throws(CacheError) {
        let excess: String? =
            if found.files.count > limit {
                "selects more than \(limit) files: select fewer by include, or raise limit"
            } else if found.entries > Self.mostEntries {
                "has more than \(Self.mostEntries) entries: name a folder below"
            } else if bytes > Self.mostBytes {
                "has more than 64 MiB of listings: name a folder below"
            } else if folders > Self.mostFolders {
                "has more than \(Self.mostFolders) folders: name a folder below"
            } else {
                nil
            }
        if let excess { throw CacheError(.jobTooLarge, "The list \(excess).") }
    }

    /// The items that fetch the files of a list; the job assigns their positions.
    func items(of list: JobItemRecord) async throws(CacheError) -> [JobItemRecord] {
        guard let selection = list.list, case .mounted(let origin, let path, _) = list.reference else {
            throw CacheError(.internal, "The item has no list.")
        }
        return try await select(selection, origin: origin, path: path).files.map { file in
            var item = JobItemRecord(
                index: 0, reference: .mounted(origin: origin, path: file.reference, key: nil), tags: list.tags,
                isPinned: list.isPinned)
            (item.parent, item.play) = (list.index, list.play)
            return item
        }
    }
}
