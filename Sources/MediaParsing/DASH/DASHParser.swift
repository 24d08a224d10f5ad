import CacheCore

/// Parser for DASH manifests (ISO/IEC 23009-1, media presentation description).
package enum DASHParser {
    /// Parses a manifest. Each representation becomes a rendition; representations of several periods with the same id
    /// in the same adaptation set become one rendition, if both have segments. A representation with `SegmentBase`, or
    /// without segment information, becomes a rendition with a `file`.
    ///
    /// A dynamic manifest is live. It has the segments of its `SegmentTimeline` and `SegmentList` elements, and those of
    /// templates that are available at the time `now`, in seconds since 1970 (nil: unknown, there are none). The time and
    /// memory are linear in the length of the text and in the limits.
    ///
    /// Throws `.unsupported` if the text is not a manifest, has a DOCTYPE or refers to remote elements; `.malformed`
    /// with the name of the element and attribute at the offset of the element; `.tooLarge` for "playlist", "segments",
    /// "renditions", "depth" or "attributes".
    package static func manifest(_ text: [UInt8], limits: MediaLimits, now: Double? = nil) throws(MediaError)
        -> MediaPlaylist
    {
        guard text.count <= limits.playlistBytes else { throw .tooLarge("playlist") }
        let content = XMLReader.withoutByteOrderMark(text)
        guard content.first(where: { !MediaText.isSpace($0) }) == UInt8(ascii: "<") else {
            throw MediaText.unknownFormat(text)
        }
        var reader = DASHReader(text, limits: limits)
        let manifest = try reader.manifest()
        var builder = DASHBuilder(limits: limits, now: now)
        return try builder.playlist(manifest)
    }
}
