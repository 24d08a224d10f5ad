import CacheCore
import CacheStore
import MediaParsing
import NIOCore

/// Reads ranges of an open asset for parsers of media.
struct MediaReader: Sendable {
    let asset: OpenAsset
    /// The reader's entry in the ledger of the asset, which fetches missing bytes; nil: missing bytes are an error.
    let reader: FillLedger.ReaderID?
    /// The rate limiter of a job; nil: no limit.
    var pace: PrefetchRateLimiter?
    /// The largest number of bytes that are fetched; jobs have no limit beside those of the index.
    var byteLimit = Int64.max
    /// The requests and bytes of the reader.
    let usage = Usage()

    /// The source for a parser. If the upstream states no length, the asset is read up to its end, or up to the largest
    /// length of a playlist.
    ///
    /// Throws `.unsupportedMedia` if the length remains unknown, and the errors of the upstream and the disk.
    func source(limits: MediaLimits) async throws(CacheError) -> MediaSource {
        guard let length = try await length(limit: Int64(limits.playlistBytes)) else {
            let limit = limits.playlistBytes
            throw CacheError(
                .unsupportedMedia, "The upstream states no length, and the asset has more than \(limit) bytes.")
        }
        return MediaSource(
            length: length,
            read: { range throws(MediaError) in
                try await fetch(range, length: length, limit: limits.fragments)
                do throws(CacheError) { return try await bytes(range) } catch { throw .unreadable(error) }
            },
            fetch: { range throws(MediaError) in try await fetch(range, length: length, limit: limits.fragments) })
    }

    /// Counts the upstream requests of parsers, and holds the ranges that they fetched.
    final class Usage: Sendable {
        private let counts = OrderedMutex(.leaf, (requests: 0, fetched: ByteRangeSet()))

        fileprivate var fetched: ByteRangeSet { counts.withLock { $0.fetched } }

        /// Throws `.tooLarge` if the number of requests exceeds the limit.
        fileprivate func countRequest(limit: Int) throws(MediaError) {
            let requests = counts.withLock { counts in
                counts.requests += 1
                return counts.requests
            }
            guard requests <= limit else { throw .tooLarge("The index of the file needs more than \(limit) requests") }
        }

        fileprivate func count(_ range: ByteRange) { counts.withLock { _ = $0.fetched.insert(range) } }
    }

    /// Fetches the missing bytes of a range in whole blocks, which players read; nothing without a reader.
    private func fetch(_ range: ByteRange, length: Int64, limit: Int) async throws(MediaError) {
        guard let reader, !range.isEmpty else { return }
        guard !asset.look({ $0.ledger.extents.gaps(in: range) }).isEmpty else { return }
        try usage.countRequest(limit: limit)
        let gaps = asset.look { $0.ledger.extents.gaps(in: MediaIndex.blocks(of: range).clamped(to: 0..<length)) }
        guard gaps.reduce(usage.fetched.byteCount, { $0 + $1.length }) <= byteLimit else {
            throw .tooLarge("The index needs more than \(byteLimit) bytes of the file, which a job with `play` fetches")
        }
        do throws(CacheError) {
            for gap in gaps { try await follow(gap, reader) }
        } catch {
            throw .unreadable(error)
        }
    }

    /// The first request of a reader that does not know the media.
    private static let opening = 0..<MediaDocument.openingBytes

    /// Waits for the rest of the first request: a parser may fail on the first bytes, while the others still arrive.
    func finishOpening() async {
        guard let reader else { return }
        do throws(CacheError) { try await follow(Self.opening, reader) } catch {}  // the error of the parser counts
    }

    /// The ranges that were fetched for the index, the first request included.
    var fetched: ByteRangeSet {
        var fetched = usage.fetched
        for run in asset.look({ $0.ledger.extents.runs(in: Self.opening) }) { fetched.insert(run) }
        return fetched
    }

    /// Fetches a range at the rate limit of the job, and waits for it without reading it.
    private func follow(_ range: ByteRange, _ reader: FillLedger.ReaderID) async throws(CacheError) {
        var rest = range
        while !rest.isEmpty {
            let piece = pace.map { rest.prefix($0.pieceBytes) } ?? rest
            if let pace { try await pace.take(piece.length) }
            asset.want(piece, by: reader)
            while case .bytes(let present) = try await asset.nextPresence(of: reader) {
                usage.count(present)
                asset.advance(reader, to: present.upperBound)
            }
            rest = piece.upperBound..<rest.upperBound
        }
    }

    /// The length of the asset, found at its end if the upstream does not state it; nil: it exceeds `limit`.
    private func length(limit: Int64) async throws(CacheError) -> Int64? {
        if let length = asset.look({ $0.ledger.length }) { return length }
        guard let reader else { throw Self.notCached }
        asset.want(0..<limit, by: reader)
        while case .bytes(let present) = try await asset.nextPresence(of: reader) {
            if let length = asset.look({ $0.ledger.length }) { return length }
            if let pace { try await pace.take(present.length) }
            asset.advance(reader, to: present.upperBound)
        }
        return asset.look { $0.ledger.length }
    }

    /// The largest piece that is read at once.
    private static let pieceBytes: Int64 = 1 << 20

    /// The bytes of a range within the asset.
    private func bytes(_ range: ByteRange) async throws(CacheError) -> [UInt8] {
        guard !range.isEmpty else { return [] }
        guard let reader else { return try await cachedBytes(range) }
        asset.want(range, by: reader)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Int(range.length))
        var unusableCount = 0
        while case .bytes(let present) = try await asset.nextPresence(of: reader) {
            // The reader protects its bytes only until it advances.
            let whole = present.prefix(Self.pieceBytes)
            let piece = asset.toCheck(whole) ?? whole
            let file = try file
            switch try await asset.storedBytes(piece, of: file) {
            case .bytes(let buffer):
                bytes += buffer.readableBytesView
                asset.context.diskThreads.giveBack(buffer)
                asset.advance(reader, to: piece.upperBound)
            case .evicted: continue
            case .unusable(let error):
                unusableCount += 1
                if unusableCount > OpenAsset.mostUnusable { throw error }
            }
        }
        guard bytes.count == range.length else {
            throw CacheError(.storageCorrupt, "Bytes of the media index were lost while they were read.")
        }
        return bytes
    }

    /// The bytes of a range that is on disk. Throws ``notCached`` if it is not.
    private func cachedBytes(_ range: ByteRange) async throws(CacheError) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Int(range.length))
        var rest = range
        while !rest.isEmpty {
            let whole = rest.prefix(Self.pieceBytes)
            let piece = asset.toCheck(whole) ?? whole
            guard asset.look({ $0.ledger.extents.contains(piece) }),
                case .bytes(let buffer) = try await asset.storedBytes(piece, of: try file)
            else { throw Self.notCached }
            bytes += buffer.readableBytesView
            asset.context.diskThreads.giveBack(buffer)
            rest = piece.upperBound..<rest.upperBound
        }
        return bytes
    }

    /// The file of the asset. Throws `.storageFull` if the disk had no space for it.
    private var file: SparseFile {
        get throws(CacheError) {
            guard let file = asset.look({ $0.file }) else {
                throw CacheError(.storageFull, "The disk has no space for the file of the asset.")
            }
            return file
        }
    }

    /// The error for an index that is not cached and must not be fetched without a reader.
    static let notCached = CacheError(
        .conflict,
        "The media index is not cached, and the origin forwards fields of readers (forward): only a reader's request for "
            + "the file fetches it.")
}
