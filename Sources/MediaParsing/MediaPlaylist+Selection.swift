package import CacheCore

/// Selection of renditions, and of the resources of a time span.
extension MediaPlaylist {
    /// The renditions that a player with this choice uses, in the order of playlist groups:
    ///
    /// - HLS: one video or muxed variant stream, an audio one if there is none; and the default rendition, else the
    ///   first one, of each group that it uses. A rendition that is part of the variant stream is omitted.
    /// - DASH: one video and one audio representation. A further one is added if it begins or ends in a period in which
    ///   the selected ones have no segments.
    /// - `.all`: all renditions with content.
    ///
    /// A filter chooses among the variant streams and representations; the language chooses the sound of their groups, and
    /// text of this language if there is some. A media playlist has no choice.
    ///
    /// - Returns: empty if no rendition matches.
    package func selected(_ choice: RenditionChoice) -> [Rendition] {
        guard choice != .all, format != .hlsMedia else { return renditions.filter(\.hasContent) }
        let filter = choice.filter
        let main = renditions.filter(\.group.isEmpty)
        let audio = main.filter { $0.kind == .audio }
        let video = main.filter { $0.kind == .video }
        if format == .dash, !(audio.isEmpty && video.isEmpty) {
            let pictures = Self.covering(choice.ordered(filter.matching(video)))
            let sounds = Self.covering(choice.ordered(filter.matching(audio).filter(filter.speaks)))
            guard pictures.isEmpty == video.isEmpty, sounds.isEmpty == audio.isEmpty else { return [] }
            return filter.language != nil && audio.isEmpty ? [] : pictures + sounds
        }
        // Muxed variant streams of HLS are of kind other.
        let muxed = main.filter { $0.kind == .video || $0.kind == .other }
        let variants = filter.matching(muxed.isEmpty ? main : muxed).filter { hasSound(of: filter, $0) }
        guard let chosen = choice.ordered(variants).first else { return [] }
        var selected = [chosen]
        var seen: Set<String> = []
        for group in chosen.groups where seen.insert(group).inserted {
            for kind in TrackKind.allCases {
                let members = renditions.filter { $0.group == group && $0.kind == kind }
                let spoken = members.filter(filter.speaks)
                let best = spoken.isEmpty ? members : spoken
                if let member = best.first(where: \.isDefault) ?? best.first { selected.append(member) }
            }
        }
        return selected.filter(\.hasContent)
    }

    /// Whether a variant stream has sound of the requested language, in itself or in one of its groups.
    private func hasSound(of filter: RenditionFilter, _ variant: Rendition) -> Bool {
        filter.speaks(variant)
            || renditions.contains { $0.kind == .audio && variant.groups.contains($0.group) && filter.speaks($0) }
    }

    /// The number of renditions that ``choices`` lists.
    private static let listLimit = 20

    /// The properties of the renditions, for an error message.
    package var choices: String {
        let texts = renditions.map { rendition in
            let size = rendition.height.map { "\(rendition.width.map(String.init) ?? "?")x\($0)" }
            let codecs = rendition.codecs.isEmpty ? nil : rendition.codecs.joined(separator: ",")
            let rate = rendition.bitsPerSecond.map { "\($0) bit/s" }
            let parts = [rendition.kind.rawValue, rendition.language, size, codecs, rate]
            return parts.compactMap(\.self).joined(separator: " ")
        }
        var seen: Set<String> = []
        let distinct = texts.filter { seen.insert($0).inserted }
        let rest = distinct.count > Self.listLimit ? "; …" : ""
        return distinct.prefix(Self.listLimit).joined(separator: "; ") + rest
    }

    /// The resources that a player needs for a time span: first the initialization sections and, if `keys` is true,
    /// the keys of the intersecting segments, then these segments in order. Each resource occurs once.
    ///
    /// A rendition with a `file` results in the whole file, whose index selects the bytes. A rendition that refers to a
    /// media playlist has no resources yet. `time` is in seconds.
    package func resources(of time: Range<Double>, in rendition: Rendition, keys: Bool) -> [Resource] {
        if let file = rendition.file { return rendition.fileTime?.overlaps(time) ?? true ? [file] : [] }
        var seen: Set<Resource> = []
        var resources: [Resource] = []
        func add(_ resource: Resource?) {
            if let resource, seen.insert(resource).inserted { resources.append(resource) }
        }
        let segments = rendition.segments.filter { segment in
            segment.time.overlaps(time) || (segment.time.isEmpty && time.contains(segment.time.lowerBound))
        }
        var previous: Segment?
        for segment in segments {
            // Long shared URIs are not hashed for each segment.
            if segment.initialization != previous?.initialization { add(segment.initialization) }
            if keys, segment.key != previous?.key { add(segment.key) }
            previous = segment
        }
        for segment in segments { add(segment.resource) }
        return resources
    }

    /// The seconds before and behind a time span that players read: the frames that overlap its ends, and the segment
    /// that ends where the span begins.
    private static let allowance = 0.25

    /// The seconds at the beginning of an HLS playlist that ffmpeg analyses when it opens it.
    private static let openingSeconds = 5.0

    /// The resources of ``resources(of:in:keys:)``, and those that players read besides: the first segments, by which ffmpeg
    /// learns the codecs, and after both, if the segments are fragmented MP4, the next one: ffmpeg needs the header of
    /// the next fragment to return the last samples of a fragment.
    ///
    /// - Returns: each resource with the presentation times for which it is needed; nil: for all times.
    package func playbackResources(
        of span: Range<Double>, in rendition: Rendition, keys: Bool
    ) -> [(resource: Resource, time: Range<Double>?)] {
        var times = [span.lowerBound - Self.allowance..<span.upperBound + Self.allowance]
        if !isLive, let first = rendition.segments.first {
            let opening = format == .dash ? Self.allowance : Self.openingSeconds
            times.insert(first.time.lowerBound..<first.time.lowerBound + opening, at: 0)
        }
        let segmentTimes = Dictionary(
            rendition.segments.map { ($0.resource, $0.time) }, uniquingKeysWith: { first, _ in first })
        var seen: Set<Resource> = []
        var needed: [(resource: Resource, time: Range<Double>?)] = []
        for time in times {
            var resources = resources(of: time, in: rendition, keys: keys)
            let next = rendition.segments.first { $0.initialization != nil && $0.time.lowerBound >= time.upperBound }
            if let next, format != .dash { resources.append(next.resource) }
            for resource in resources where seen.insert(resource).inserted {
                needed.append((resource, segmentTimes[resource]))
            }
        }
        return needed
    }

    /// The first rendition, and each following one whose first or last segment is not covered by those before it.
    private static func covering(_ renditions: [Rendition]) -> [Rendition] {
        var selected: [Rendition] = []
        for rendition in renditions {
            guard !selected.isEmpty else {
                selected.append(rendition)
                continue
            }
            let segments = [rendition.segments.first, rendition.segments.last]
            let ends = segments.compactMap { $0?.time } + [rendition.fileTime].compactMap(\.self)
            let isCovered = ends.allSatisfy { time in
                let middle = (time.lowerBound + time.upperBound) / 2
                return selected.contains { $0.covers(middle) }
            }
            if !isCovered { selected.append(rendition) }
        }
        return selected
    }
}

extension MediaPlaylist.Rendition {
    /// The largest difference between the boundaries of alternative renditions in seconds.
    private static let tolerance = 0.5

    /// Whether the rendition refers to a resource of its own.
    var hasContent: Bool { playlist != nil || file != nil || !segments.isEmpty }

    /// Whether the rendition has a segment or file at or near a time. A file of unknown times covers every time.
    fileprivate func covers(_ time: Double) -> Bool {
        func isNear(_ span: Range<Double>) -> Bool {
            span.lowerBound - Self.tolerance <= time && time <= span.upperBound + Self.tolerance
        }
        if file != nil { return fileTime.map(isNear) ?? true }
        return segments.contains { isNear($0.time) }
    }
}
