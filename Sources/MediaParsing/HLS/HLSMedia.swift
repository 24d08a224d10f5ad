import CacheCore

/// The segments of a media playlist (RFC 8216 §4.3.2 and §4.3.3).
struct HLSMedia {
    private typealias Resource = MediaPlaylist.Resource

    private(set) var segments: [MediaPlaylist.Segment] = []
    /// The end of the last segment, which may be a gap, in seconds.
    private(set) var duration = 0.0
    /// `EXT-X-TARGETDURATION` and `HOLD-BACK` of `EXT-X-SERVER-CONTROL` in seconds.
    private(set) var targetDuration: Double?
    private(set) var serverHoldBack: Double?
    private let limits: MediaLimits
    /// The number of segments and gaps.
    private var count = 0
    /// The initialization section and the key of the following segments.
    private var initialization: Resource?
    private var key: Resource?
    /// The previous byte range, from which a range without an offset continues.
    private var previous: Resource?
    /// The tags of the next segment.
    private var next = Tags()

    private struct Tags {
        var duration: Double?
        var byteRange: (tag: HLSTag, length: Int64, offset: Int64?)?
        var isGap = false
    }

    init(limits: MediaLimits) { self.limits = limits }

    /// The distance from the live edge where a player begins in seconds (RFC 8216 §6.3.3).
    var holdBack: Double? { serverHoldBack ?? targetDuration.map { 3 * $0 } }

    /// Applies `EXT-X-TARGETDURATION`.
    mutating func target(_ tag: HLSTag) throws(MediaError) {
        guard let seconds = MediaText.seconds(tag.value) else { throw tag.malformed }
        targetDuration = seconds
    }

    /// Applies `EXT-X-SERVER-CONTROL`.
    mutating func serverControl(_ tag: HLSTag, variables: inout HLSVariables) throws(MediaError) {
        let attributes = try HLSAttributes(tag, variables: &variables)
        serverHoldBack = attributes["HOLD-BACK"].flatMap { MediaText.seconds(Array($0.utf8)[...]) }
    }

    /// Applies `EXTINF`. A negative or malformed duration is replaced by the target duration, so that the segment is
    /// kept; the former means an unknown duration.
    mutating func extinf(_ tag: HLSTag) throws(MediaError) {
        let text = MediaText.trimmed(tag.value.prefix { $0 != UInt8(ascii: ",") && !MediaText.isSpace($0) })
        next.duration = MediaText.seconds(text) ?? targetDuration ?? Self.usualDuration
        let isNegative = text.first == UInt8(ascii: "-") && MediaText.seconds(text.dropFirst()) != nil
        guard isNegative || MediaText.seconds(text) != nil else { throw tag.malformed }
    }

    /// The usual duration of a segment in seconds.
    private static let usualDuration = 6.0

    /// Applies `EXT-X-BYTERANGE`.
    mutating func byteRange(_ tag: HLSTag) throws(MediaError) {
        guard let range = Self.byteRange(tag.value) else { throw tag.malformed }
        next.byteRange = (tag, range.length, range.offset)
    }

    /// Applies `EXT-X-GAP`: the next segment is missing.
    mutating func gap() { next.isGap = true }

    /// Applies `EXT-X-MAP`. A byte range without an offset begins at 0.
    mutating func map(_ tag: HLSTag, variables: inout HLSVariables) throws(MediaError) {
        let attributes = try HLSAttributes(tag, variables: &variables)
        let uri = try attributes.required("URI")
        var section = Resource(uri: uri)
        if let text = attributes["BYTERANGE"] {
            guard let range = Self.byteRange(Array(text.utf8)[...]) else { throw tag.malformed }
            section.range = ByteRange(offset: range.offset ?? 0, length: range.length)
        }
        initialization = MediaURI.isFetchable(uri) ? section : nil
    }

    /// Applies `EXT-X-KEY`. Only keys of the format `identity` are files; other formats name a license server.
    mutating func key(_ tag: HLSTag, variables: inout HLSVariables) throws(MediaError) {
        let attributes = try HLSAttributes(tag, variables: &variables)
        if try attributes.required("METHOD") == "NONE" {
            key = nil
            return
        }
        let uri = try attributes.required("URI")
        guard attributes["KEYFORMAT"] ?? "identity" == "identity" else { return }
        key = MediaURI.isFetchable(uri) ? Resource(uri: uri) : nil
    }

    /// Adds the segment of a URI line. A byte range without an offset that does not continue another one begins at 0.
    ///
    /// Throws `.malformed("EXTINF")` without a duration or if the sum of the durations is too large,
    /// `.malformed("EXT-X-BYTERANGE")` for a range that is too large, and `.tooLarge("segments")`.
    mutating func add(uri: String, offset: Int64) throws(MediaError) {
        defer { next = Tags() }
        guard count < limits.segments else { throw .tooLarge("segments") }
        guard let seconds = next.duration, duration + seconds <= MediaText.timeLimit else {
            throw .malformed("EXTINF", offset: offset)
        }
        var resource = Resource(uri: uri)
        if let (tag, length, start) = next.byteRange {
            let continued = previous?.uri == uri ? previous?.range?.upperBound : nil
            let start = start ?? continued ?? 0
            guard start + length < 1 << 53 else { throw tag.malformed }
            resource.range = ByteRange(offset: start, length: length)
        }
        if !next.isGap {
            segments.append(
                MediaPlaylist.Segment(
                    time: duration..<duration + seconds, resource: resource, initialization: initialization, key: key))
        }
        count += 1
        duration += seconds
        previous = resource
    }

    /// Parses `length[@offset]`; the length is positive.
    private static func byteRange(_ text: ArraySlice<UInt8>) -> (length: Int64, offset: Int64?)? {
        let parts = text.split(separator: UInt8(ascii: "@"), maxSplits: 1, omittingEmptySubsequences: false)
        guard let first = parts.first, let length = FieldText.byteCount(MediaText.trimmed(first)), length > 0 else {
            return nil
        }
        guard parts.count == 2 else { return (length, nil) }
        guard let offset = FieldText.byteCount(MediaText.trimmed(parts[1])) else { return nil }
        return (length, offset)
    }
}
