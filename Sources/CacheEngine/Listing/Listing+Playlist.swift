import CacheCore
import MediaParsing

extension Listing {
    /// The files of an HLS playlist or DASH manifest: playlists of renditions, segments, initialization sections, keys, and
    /// files with an index of their own. A live playlist has its present segments.
    ///
    /// Throws `.upstreamUnusable` for a text that is no playlist. The message names the fault.
    init(playlist text: [UInt8], limits: MediaLimits, now: Timestamp) throws(CacheError) {
        self.init()
        let playlist: MediaPlaylist
        do throws(MediaError) {
            let isHLS = XMLReader.withoutByteOrderMark(text).starts(with: "#EXTM3U".utf8)
            playlist =
                isHLS
                ? try HLSParser.playlist(text, limits: limits)
                : try DASHParser.manifest(text, limits: limits, now: Double(now.milliseconds) / 1000)
        } catch {
            let fault =
                switch error {
                case .unsupported(let part): part
                case .malformed(let part, let offset): "malformed \(part) at byte \(offset)"
                case .tooLarge(let part): "too large: \(part)"
                case .unreadable(let error): throw error
                }
            throw CacheError(.upstreamUnusable(), "The listing is no playlist that can be read (\(fault)).")
        }
        listsPlaylists = playlist.format == .hlsMultivariant
        var seen: Set<String> = []
        for rendition in playlist.renditions {
            let segments = rendition.segments.lazy.flatMap { [$0.initialization, $0.key, $0.resource] }
            let uris = [rendition.playlist, rendition.file?.uri] + segments.map { $0?.uri }
            for uri in uris.compactMap(\.self) where seen.insert(uri).inserted {
                entries.append(ListingEntry(reference: uri))
            }
        }
        guard entries.count <= Self.entryLimit else {
            throw CacheError(.upstreamUnusable(), "The listing has more than \(Self.entryLimit) entries.")
        }
    }
}
