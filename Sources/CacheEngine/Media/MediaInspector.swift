package import CacheCore
import CacheStore
import Synchronization

/// Reads the indices of cached media.
package final class MediaInspector: Sendable {
    private let context: EngineContext
    private let resolver: AssetResolver
    /// Guards the documents that were parsed last.
    private let parsed = Mutex<[Parsed]>([])

    /// A parsed document, and the generation that it describes.
    private struct Parsed {
        let asset: AssetID
        /// The creation of the catalog row: a row that was deleted numbers its generations anew.
        let created: Timestamp
        let generation: Int64
        let document: MediaDocument
    }

    /// The number of kept documents.
    private static let capacity = 32

    init(context: EngineContext, resolver: AssetResolver) {
        self.context = context
        self.resolver = resolver
    }

    /// The index of an asset, and what plays without the upstream. Missing bytes of the index are fetched at prefetch
    /// priority.
    ///
    /// Throws `.notFound`, `.unsupportedMedia`, `.malformedMedia`, `.mediaIndexTooLarge`, and the errors of the
    /// upstream.
    package func media(of id: AssetID) async throws(CacheError) -> MediaReport {
        let target = try await resolver.resolve(.known(id))
        let asset = try await resolver.open(target)
        defer { context.openAssets.release(asset) }
        let isFresh = asset.isFresh(at: context.wallClock.now())
        if isFresh, let document = kept(of: asset) { return report(on: asset, document) }
        let reader = try asset.join(
            opening: .closed(0..<MediaDocument.openingBytes), priority: .prefetch, mustConfirm: !isFresh,
            began: context.wallClock.now(), maxLead: nil)
        defer { asset.leave(reader) }
        _ = try await asset.settle(reader)
        let media = MediaReader(asset: asset, reader: reader)
        let document = try await document(of: asset, media)
        return report(on: asset, document)
    }

    /// The document of an open asset, parsed or from memory. `media`: a reader of the asset.
    func document(of asset: OpenAsset, _ media: MediaReader) async throws(CacheError) -> MediaDocument {
        if let document = kept(of: asset) { return document }
        let (record, source) = (asset.record, try media.source)
        let document: MediaDocument
        do throws(MediaError) {
            document = try await MediaDocument.parsed(
                source, contentType: record?.generation.contentType, path: asset.target.path, limits: MediaLimits())
        } catch {
            throw error.cacheError
        }
        if let record {
            parsed.withLock { parsed in
                parsed.removeAll { $0.asset == asset.id }
                parsed.append(
                    Parsed(
                        asset: asset.id, created: record.createdAt, generation: record.generation.number,
                        document: document))
                if parsed.count > Self.capacity { parsed.removeFirst() }
            }
        }
        return document
    }

    /// The document of the asset's present generation, if it is in memory.
    private func kept(of asset: OpenAsset) -> MediaDocument? {
        guard let record = asset.record else { return nil }
        return parsed.withLock { parsed in
            parsed.first {
                $0.asset == asset.id && $0.created == record.createdAt && $0.generation == record.generation.number
            }?.document
        }
    }

    private func report(on asset: OpenAsset, _ document: MediaDocument) -> MediaReport {
        let extents = asset.look { $0.ledger.extents }
        return MediaReport(assetID: asset.id, document: document, cached: extents)
    }
}

/// The index of a media asset, and which of its bytes are cached.
package struct MediaReport: Sendable {
    package let assetID: AssetID
    package let document: MediaDocument
    package let cached: ByteRangeSet

    package init(assetID: AssetID, document: MediaDocument, cached: ByteRangeSet) {
        self.assetID = assetID
        self.document = document
        self.cached = cached
    }

    /// The time spans in seconds that play with the cached bytes, in order; empty for a playlist.
    package var playable: [Range<Double>] {
        if case .index(let index) = document { index.playableSpans(cached: cached) } else { [] }
    }
}
