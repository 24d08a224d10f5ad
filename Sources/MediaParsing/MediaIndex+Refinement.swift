package import CacheCore

extension MediaIndex {
    /// The state of a parser that divides coarse pieces.
    enum Refinement: Hashable, Sendable {
        case matroska(MatroskaMap)
        case mp3(MP3Map)
        case transportStream(TransportStreamMap)
    }

    /// The approximate memory of the refinement in bytes.
    package var refinementBytes: Int {
        switch refinement {
        case .matroska(let map): 40 * map.points.count
        case .transportStream(let map): 32 * map.times.points.count
        case .mp3, nil: 0
        }
    }

    /// Divides the pieces that contain the end of a span of time. Reads media data that the span needs.
    package mutating func refine(for time: Range<Double>, _ source: MediaSource) async throws(MediaError) {
        switch refinement {
        case .matroska(var map):
            try await map.refine(for: time, source)
            apply(map)
        case .mp3(var map):
            try await map.refine(for: time, source)
            apply(map)
        case .transportStream(var map):
            try await map.refine(for: time, source)
            apply(map)
        case nil: break
        }
    }

    /// Divides the pieces that are cached in part, so that their cached beginning counts as playable.
    ///
    /// - Parameter source: reads cached bytes.
    package mutating func explore(_ cached: ByteRangeSet, _ source: MediaSource) async throws(MediaError) {
        switch refinement {
        case .matroska(var map):
            try await map.explore(cached, source)
            apply(map)
        case .transportStream(var map):
            try await map.explore(cached, source)
            apply(map)
        case .mp3, nil: break
        }
    }

    /// Sets the pieces of all tracks; they share the clusters.
    mutating func apply(_ map: MatroskaMap) {
        let pieces = [false, true].map { map.pieces(precedesVideo: $0) }
        let hasVideo = map.clock.video != nil
        for track in tracks.indices { tracks[track].pieces = pieces[hasVideo && tracks[track].kind != .video ? 1 : 0] }
        duration = map.duration
        refinement = .matroska(map)
    }

    mutating func apply(_ map: MP3Map) {
        tracks[0].pieces = map.pieces
        duration = map.duration
        refinement = .mp3(map)
    }

    /// Sets the pieces of all streams; they overlap by the measured distance between them.
    mutating func apply(_ map: TransportStreamMap) {
        let pieces = map.pieces
        for track in tracks.indices { tracks[track].pieces = pieces }
        duration = map.duration
        refinement = .transportStream(map)
    }
}
