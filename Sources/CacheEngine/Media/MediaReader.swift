import CacheCore
import CacheStore
import NIOCore

/// A reader of an open asset that fetches the missing bytes of a range and returns it. Parsers of media read with it.
struct MediaReader: Sendable {
    let asset: OpenAsset
    /// The reader's entry in the ledger of the asset.
    let reader: FillLedger.ReaderID
    /// The rate limiter of a job; nil: no limit.
    var pace: PrefetchRateLimiter?

    /// The length of the asset. Throws `.unsupportedMedia` while it is unknown.
    var length: Int64 {
        get throws(CacheError) {
            guard let length = asset.look({ $0.ledger.length }) else {
                throw CacheError(.unsupportedMedia, "The length of the asset is unknown.")
            }
            return length
        }
    }

    /// The source for a parser. Throws as ``length``.
    var source: MediaSource {
        get throws(CacheError) {
            MediaSource(length: try length) { range throws(MediaError) in
                do throws(CacheError) { return try await bytes(range) } catch { throw .unreadable(error) }
            }
        }
    }

    /// The largest piece that is read at once.
    private static let pieceBytes: Int64 = 1 << 20

    /// The bytes of a range within the asset.
    private func bytes(_ range: ByteRange) async throws(CacheError) -> [UInt8] {
        guard !range.isEmpty else { return [] }
        let missing = asset.look { $0.ledger.extents.gaps(in: range) }.byteCount
        if let pace, missing > 0 { try await pace.take(missing) }
        asset.want(range, by: reader)
        var bytes: [UInt8] = []
        while case .bytes(let present) = try await asset.settle(reader) {
            // The reader protects its bytes only until it advances.
            let piece = present.prefix(Self.pieceBytes)
            guard let file = asset.look({ $0.file }) else {
                throw CacheError(.storageFull, "The disk has no space for the file of the asset.")
            }
            let buffer = try await asset.context.diskThreads.read(piece, of: file)
            bytes += buffer.readableBytesView
            asset.context.diskThreads.takeBack(buffer)
            asset.advance(reader, to: piece.upperBound)
        }
        guard bytes.count == range.length else {
            throw CacheError(.storageCorrupt, "Bytes of the media index were lost while they were read.")
        }
        return bytes
    }
}
