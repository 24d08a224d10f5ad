/// Selection of renditions, and of the resources of a time span.
extension MediaPlaylist {
    /// The renditions that a player with this choice uses, in the order of playlist groups:
    ///
    /// - HLS: one video or muxed variant stream, an audio one if there is none; and the default rendition, else the
    ///   first one, of each group that it uses. A rendition that is part of the variant stream is omitted.
    /// - DASH: one video and one audio representation. A further one is added if it begins or ends in a period in which
    ///   the selected ones have no segments.
    /// - `.all`: all renditions with content.
    package func selected(_ choice: RenditionChoice) -> [Rendition] {
        guard choice != .all else { return renditions.filter(\.hasContent) }
        let main = renditions.filter(\.group.isEmpty)
        let audio = main.filter { $0.kind == .audio }
        let video = main.filter { $0.kind == .video }
        if format == .dash, !(audio.isEmpty && video.isEmpty) {
            return Self.covering(choice.ordered(video)) + Self.covering(choice.ordered(audio))
        }
        // Muxed variant streams of HLS are of kind other.
        let muxed = main.filter { $0.kind == .video || $0.kind == .other }
        guard let chosen = choice.ordered(muxed.isEmpty ? main : muxed).first else { return [] }
        var selected = [chosen]
        var seen: Set<String> = []
        for group in chosen.groups where seen.insert(group).inserted {
            for kind in MediaIndex.TrackKind.allCases {
                let members = renditions.filter { $0.group == group && $0.kind == kind }
                if let member = members.first(where: \.isDefault) ?? members.first { selected.append(member) }
            }
        }
        return selected.filter(\.hasContent)
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
