import CacheCore

/// The elements of a media presentation description that determine its segments (ISO/IEC 23009-1 §5.3), as written:
/// without inheritance.
struct DASHManifest {
    /// An adaptation set (§5.3.3).
    struct AdaptationSet {
        var id: String?
        var common = Common()
        var representations: [Representation] = []
    }

    /// A representation (§5.3.5).
    struct Representation {
        var id: String?
        var bandwidth: Int64?
        var common = Common()
    }

    /// A period (§5.3.2); times in seconds.
    struct Period {
        var start: Double?
        var duration: Double?
        var common = Common()
        var sets: [AdaptationSet] = []
    }

    /// Elements and attributes that occur on several levels.
    struct Common {
        /// The offset of the element.
        var offset: Int64 = 0
        /// The first `BaseURL`.
        var base: String?
        var contentType: String?
        var mimeType: String?
        var codecs: String?
        /// The attribute `lang`.
        var language: String?
        /// In pixels.
        var width: Int64?
        var height: Int64?
        /// Whether the element has a width.
        var isVisual = false
        var segments: DASHSegments?
    }

    /// The attributes of a dynamic manifest; times in seconds, nil: absent.
    struct Live {
        /// `availabilityStartTime`, in seconds since 1970.
        var availabilityStart: Double?
        var updatePeriod: Double?
        /// `timeShiftBufferDepth`; nil: all segments since the beginning.
        var timeShift: Double?
        /// `suggestedPresentationDelay`.
        var delay: Double?
    }

    /// Whether the type is `dynamic`.
    var isDynamic = false
    var live = Live()
    /// `mediaPresentationDuration` in seconds.
    var duration: Double?
    var base: String?
    var periods: [Period] = []
    /// The offset of the root element.
    var offset: Int64 = 0
}

/// Segment information: `SegmentBase`, `SegmentList` or `SegmentTemplate` (ISO/IEC 23009-1 §5.3.9).
struct DASHSegments {
    enum Kind { case base, list, template }

    /// An element `S` of a `SegmentTimeline`; times in units of the timescale.
    struct Entry {
        /// The offset of the element.
        var offset: Int64
        var time: Int64?
        var duration: Int64
        /// The number of repetitions; negative: up to the next entry with a time, or to the end of the period.
        var repetitions: Int64
        /// The number of the first segment.
        var number: Int64?
    }

    /// A `SegmentURL`.
    struct SegmentURL {
        var media: String?
        var range: ByteRange?
    }

    /// An `Initialization` element.
    struct Initialization {
        var source: String?
        var range: ByteRange?
    }

    var kind: Kind
    /// The offset of the element.
    var offset: Int64
    var timescale: Int64?
    /// The duration of each segment in units of the timescale.
    var duration: Int64?
    var startNumber: Int64?
    var endNumber: Int64?
    /// The presentation time offset in units of the timescale.
    var timeOffset: Int64?
    /// The template of the media segments.
    var media: String?
    /// The template of the initialization section.
    var initializationTemplate: String?
    var initialization: Initialization?
    var timeline: [Entry]?
    var urls: [SegmentURL] = []

    init(kind: Kind, offset: Int64) {
        self.kind = kind
        self.offset = offset
    }

    /// The information of one level, completed by the information of the level above. An element of another kind
    /// replaces all of it (§5.3.9.1).
    static func merged(_ own: DASHSegments?, into parent: DASHSegments?) -> DASHSegments? {
        guard var merged = own else { return parent }
        guard let parent, parent.kind == merged.kind else { return merged }
        merged.timescale = merged.timescale ?? parent.timescale
        if merged.timeline == nil, merged.duration == nil {
            merged.timeline = parent.timeline
            merged.duration = parent.duration
        }
        merged.startNumber = merged.startNumber ?? parent.startNumber
        merged.endNumber = merged.endNumber ?? parent.endNumber
        merged.timeOffset = merged.timeOffset ?? parent.timeOffset
        merged.media = merged.media ?? parent.media
        merged.initializationTemplate = merged.initializationTemplate ?? parent.initializationTemplate
        merged.initialization = merged.initialization ?? parent.initialization
        if merged.urls.isEmpty { merged.urls = parent.urls }
        return merged
    }
}
