import CacheCore

/// Applies inheritance and times to the elements of a manifest, and expands them to renditions with segments.
struct DASHBuilder {
    private typealias Rendition = MediaPlaylist.Rendition
    private typealias Resource = MediaPlaylist.Resource

    /// The identity of a rendition over several periods.
    private struct Key: Hashable {
        var set: String?
        var representation: String
        var kind: TrackKind
    }

    /// A period with its times in seconds; the end is nil if it is unknown.
    private struct Period {
        var start: Double
        var end: Double?
        /// Nil for a static manifest.
        var window: DASHTimes.Window?
    }

    private let limits: MediaLimits
    /// The present time in seconds since 1970; nil: unknown.
    private let now: Double?
    private var renditions: [Rendition] = []
    private var indexes: [Key: Int] = [:]
    /// The number of further segments.
    private var segmentBudget: Int
    /// The number of bytes that further URLs may have. Templates multiply their text.
    private var budget: Int

    init(limits: MediaLimits, now: Double? = nil) {
        self.limits = limits
        self.now = now
        segmentBudget = limits.segments
        budget = limits.playlistBytes.multipliedReportingOverflow(by: 8).overflow ? Int.max : limits.playlistBytes * 8
    }

    /// The playlist of a manifest.
    mutating func playlist(_ manifest: DASHManifest) throws(MediaError) -> MediaPlaylist {
        guard !manifest.periods.isEmpty else { throw .malformed("Period", offset: manifest.offset) }
        var start = 0.0
        var end: Double?
        let window = window(of: manifest)
        for (index, element) in manifest.periods.enumerated() {
            let earliest = start
            start = element.start ?? end ?? start
            guard start >= earliest else { throw .malformed("Period@start", offset: element.common.offset) }
            let next = index + 1 < manifest.periods.count ? manifest.periods[index + 1].start : nil
            let isLast = index + 1 == manifest.periods.count
            end = element.duration.map { [start] in start + $0 } ?? next
            // The duration of a dynamic manifest can be relative to the first period.
            if end == nil, isLast, let duration = manifest.duration, duration >= start { end = duration }
            if let end, end < start || end > MediaText.timeLimit {
                throw .malformed("Period", offset: element.common.offset)
            }
            try add(
                element, of: Period(start: start, end: end, window: window), base: manifest.base ?? "")
        }
        let last = renditions.compactMap { $0.segments.last?.time.upperBound }.max()
        let duration = manifest.isDynamic ? nil : manifest.duration ?? end ?? last
        var playlist = MediaPlaylist(
            format: .dash, isLive: manifest.isDynamic, duration: duration, renditions: renditions)
        if let window {
            playlist.holdBack = manifest.live.delay
            playlist.updateInterval = manifest.live.updatePeriod.map {
                max(.seconds($0), Generation.leastUpdateInterval)
            }
            playlist.clockEdge = window.edge
        }
        return playlist
    }

    /// The available times; nil for a static manifest.
    private func window(of manifest: DASHManifest) -> DASHTimes.Window? {
        guard manifest.isDynamic else { return nil }
        var window = DASHTimes.Window(depth: manifest.live.timeShift)
        if let now, let start = manifest.live.availabilityStart, now - start <= MediaText.timeLimit {
            window.edge = now - start
        }
        return window
    }

    private mutating func add(
        _ element: DASHManifest.Period, of period: Period, base: String
    ) throws(MediaError) {
        let periodBase = try resolved(element.common.base, base)
        for set in element.sets {
            let setBase = try resolved(set.common.base, periodBase)
            let inherited = DASHSegments.merged(set.common.segments, into: element.common.segments)
            for representation in set.representations {
                var rendition = Rendition(
                    id: representation.id ?? "", kind: Self.kind(of: representation.common, in: set.common),
                    bitsPerSecond: representation.bandwidth)
                let (own, shared) = (representation.common, set.common)
                rendition.language = own.language ?? shared.language
                (rendition.width, rendition.height) = (own.width ?? shared.width, own.height ?? shared.height)
                rendition.codecs = MediaCodec.list(own.codecs ?? shared.codecs ?? "")
                try fill(
                    &rendition, from: representation, of: period,
                    segments: DASHSegments.merged(representation.common.segments, into: inherited),
                    base: try resolved(representation.common.base, setBase))
                let key = representation.id.map { Key(set: set.id, representation: $0, kind: rendition.kind) }
                try add(rendition, key: key)
            }
        }
    }

    /// Adds a rendition, or appends it to the rendition of an earlier period with the same key.
    private mutating func add(_ rendition: Rendition, key: Key?) throws(MediaError) {
        if let key, let index = indexes[key], renditions[index].file == nil, rendition.file == nil {
            renditions[index].segments += rendition.segments
            return
        }
        guard renditions.count < limits.renditions else { throw .tooLarge("renditions") }
        if let key { indexes[key] = renditions.count }
        renditions.append(rendition)
    }

    /// Sets the segments or the file of a rendition.
    private mutating func fill(
        _ rendition: inout Rendition, from element: DASHManifest.Representation, of period: Period,
        segments info: DASHSegments?, base: String
    ) throws(MediaError) {
        guard let info, info.kind != .base else {
            guard !base.isEmpty else { throw .malformed("BaseURL", offset: element.common.offset) }
            rendition.file = Resource(uri: base)
            rendition.fileTime = period.end.map { period.start..<$0 }
            return
        }
        let times = try DASHTimes.segments(
            info, start: period.start, end: period.end, window: period.window,
            budget: &segmentBudget)
        let initialization = try initialization(info, element, base: base)
        rendition.segments.reserveCapacity(times.count)
        let media = info.kind == .template ? try template(info.media, info, element) : nil
        for time in times {
            let resource: Resource
            if let media {
                resource = Resource(
                    uri: try resolved(media.expanded(number: time.number, time: time.time), base))
            } else {
                let url = info.urls[time.index]
                resource = Resource(uri: try resolved(url.media, base), range: url.range)
            }
            guard !resource.uri.isEmpty else { throw .malformed("BaseURL", offset: info.offset) }
            rendition.segments.append(
                MediaPlaylist.Segment(time: time.span, resource: resource, initialization: initialization))
        }
    }

    /// The initialization section of a representation; nil if it has none.
    private mutating func initialization(
        _ info: DASHSegments, _ element: DASHManifest.Representation, base: String
    ) throws(MediaError) -> Resource? {
        if info.kind == .template, let text = info.initializationTemplate {
            let template = try template(text, info, element)
            guard !template.hasVariables else {
                throw .malformed("SegmentTemplate@initialization", offset: info.offset)
            }
            return Resource(uri: try resolved(template.expanded(number: 0, time: 0), base))
        }
        guard let section = info.initialization else { return nil }
        let uri = try resolved(section.source, base)
        guard !uri.isEmpty else { throw .malformed("Initialization", offset: info.offset) }
        return Resource(uri: uri, range: section.range)
    }

    private mutating func template(
        _ text: String?, _ info: DASHSegments, _ element: DASHManifest.Representation
    ) throws(MediaError) -> DASHTemplate {
        guard let text else { throw .malformed("SegmentTemplate@media", offset: info.offset) }
        budget -= text.utf8.count
        return try DASHTemplate(text, of: element, offset: info.offset, byteLimit: max(0, budget))
    }

    /// A reference resolved against the base URLs (§5.6.4); nil refers to the base URL itself. Throws
    /// `.tooLarge("playlist")` if all URLs together are too long.
    private mutating func resolved(_ reference: String?, _ base: String) throws(MediaError) -> String {
        // The base URL counts even if it is the result: each use of the result takes time in proportion to its length.
        budget -= (reference?.utf8.count ?? 0) + base.utf8.count
        guard budget >= 0 else { throw .tooLarge("playlist") }
        return reference.map { MediaURI.joined($0, to: base) } ?? base
    }

    /// The kind of a representation by its content type, else by its MIME type and codecs.
    private static func kind(
        of representation: DASHManifest.Common, in set: DASHManifest.Common
    ) -> TrackKind {
        let mimeType = FieldText.lowered(representation.mimeType ?? set.mimeType ?? "")
        let type = representation.contentType ?? set.contentType ?? String(mimeType.prefix { $0 != "/" })
        switch type {
        case "video": return .video
        case "audio": return .audio
        case "text": return .subtitles
        case "image": return .other
        default: break
        }
        let codecs = (representation.codecs ?? set.codecs ?? "").split(separator: ",").compactMap(MediaCodec.kind)
        if codecs.contains(.video) || representation.isVisual || set.isVisual { return .video }
        return mimeType == "application/ttml+xml" ? .subtitles : codecs.first ?? .other
    }
}
