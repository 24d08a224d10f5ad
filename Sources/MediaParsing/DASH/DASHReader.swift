import CacheCore

/// Reads the elements of a manifest. Each level has a function of its own, so that the input cannot deepen the
/// recursion.
struct DASHReader {
    private var xml: XMLReader
    private let limits: MediaLimits
    /// The number of elements in memory, bounded by the limit for segments.
    private var elementCount = 0

    init(_ text: [UInt8], limits: MediaLimits) {
        xml = XMLReader(text, depth: limits.depth)
        self.limits = limits
    }

    /// Reads from the text.
    private mutating func read<Value>(_ step: (inout XMLReader) throws(XMLError) -> Value) throws(MediaError) -> Value {
        do throws(XMLError) { return try step(&xml) } catch {
            switch error {
            case .malformed(let part, let offset): throw .malformed(part, offset: offset)
            case .unsupported(let part): throw .unsupported(part)
            case .tooLarge(let limit): throw .tooLarge(limit)
            }
        }
    }

    private mutating func next() throws(MediaError) -> XMLReader.Event {
        try read { (xml) throws(XMLError) in try xml.next() }
    }

    private mutating func readText() throws(MediaError) -> String {
        try read { (xml) throws(XMLError) in try xml.text() }
    }

    private mutating func nextChild() throws(MediaError) -> XMLReader.Element? {
        try read { (xml) throws(XMLError) in try xml.nextChild() }
    }

    private mutating func skip() throws(MediaError) { try read { (xml) throws(XMLError) in try xml.skip() } }

    /// Reads the document. Throws `.unsupported` with the name of the root element if it is not `MPD`.
    mutating func manifest() throws(MediaError) -> DASHManifest {
        guard case .start(let root) = try next() else { throw .malformed("XML", offset: 0) }
        guard root.name == "MPD" else { throw .unsupported("root element \(String(root.name.prefix(64)))") }
        var manifest = DASHManifest()
        manifest.offset = root.offset
        manifest.isDynamic = root.attribute("type") == "dynamic"
        manifest.duration = try root.duration("mediaPresentationDuration")
        if manifest.isDynamic { manifest.live = try live(root) }
        while let child = try nextChild() {
            switch child.name {
            case "BaseURL": try readBase(into: &manifest.base)
            case "Period": manifest.periods.append(try period(child))
            default: try skip()
            }
        }
        guard case .finished = try next() else { throw .malformed("XML", offset: 0) }
        return manifest
    }

    /// The attributes of a dynamic manifest.
    private func live(_ root: XMLReader.Element) throws(MediaError) -> DASHManifest.Live {
        DASHManifest.Live(
            availabilityStart: root.instant("availabilityStartTime"),
            updatePeriod: try root.duration("minimumUpdatePeriod"),
            timeShift: try root.duration("timeShiftBufferDepth"),
            delay: try root.duration("suggestedPresentationDelay"))
    }

    private mutating func period(_ element: XMLReader.Element) throws(MediaError) -> DASHManifest.Period {
        var period = DASHManifest.Period()
        period.start = try element.duration("start")
        period.duration = try element.duration("duration")
        try begin(element, &period.common)
        while let child = try nextChild() {
            if child.name == "AdaptationSet" {
                period.sets.append(try adaptationSet(child))
            } else {
                try readCommon(child, &period.common)
            }
        }
        return period
    }

    private mutating func adaptationSet(_ element: XMLReader.Element) throws(MediaError) -> DASHManifest.AdaptationSet {
        var set = DASHManifest.AdaptationSet()
        set.id = element.prefix(of: "id")
        try begin(element, &set.common)
        while let child = try nextChild() {
            switch child.name {
            case "Representation": set.representations.append(try representation(child))
            case "ContentComponent":
                set.common.contentType = set.common.contentType ?? child.prefix(of: "contentType")
                try skip()
            default: try readCommon(child, &set.common)
            }
        }
        return set
    }

    private mutating func representation(_ element: XMLReader.Element) throws(MediaError) -> DASHManifest.Representation
    {
        var representation = DASHManifest.Representation()
        representation.id = element.attribute("id")
        representation.bandwidth = try element.number("bandwidth")
        try begin(element, &representation.common)
        while let child = try nextChild() { try readCommon(child, &representation.common) }
        return representation
    }

    /// Reads the attributes that occur on several levels. Throws `.unsupported` for a remote element.
    private mutating func begin(
        _ element: XMLReader.Element, _ common: inout DASHManifest.Common
    ) throws(MediaError) {
        try count()
        try element.requireLocal()
        common.offset = element.offset
        common.contentType = element.prefix(of: "contentType")
        common.mimeType = element.prefix(of: "mimeType")
        common.codecs = element.prefix(of: "codecs")
        common.language = element.prefix(of: "lang")
        common.width = element.attribute("width").flatMap { FieldText.number($0.utf8) }
        common.height = element.attribute("height").flatMap { FieldText.number($0.utf8) }
        common.isVisual = element.attribute("width") != nil || element.attribute("maxWidth") != nil
    }

    /// Reads a child element that occurs on several levels, or skips it.
    private mutating func readCommon(
        _ child: XMLReader.Element, _ common: inout DASHManifest.Common
    ) throws(MediaError) {
        switch child.name {
        case "BaseURL": try readBase(into: &common.base)
        case "SegmentBase": common.segments = try segments(child, kind: .base)
        case "SegmentList": common.segments = try segments(child, kind: .list)
        case "SegmentTemplate": common.segments = try segments(child, kind: .template)
        default: try skip()
        }
    }

    /// Reads a `BaseURL`. Further ones on the same level are alternatives and are ignored.
    private mutating func readBase(into base: inout String?) throws(MediaError) {
        let text = try readText()
        base = base ?? text
    }

    private mutating func segments(
        _ element: XMLReader.Element, kind: DASHSegments.Kind
    ) throws(MediaError) -> DASHSegments {
        try element.requireLocal()
        var segments = DASHSegments(kind: kind, offset: element.offset)
        segments.timescale = try element.positiveNumber("timescale")
        segments.duration = try element.positiveNumber("duration")
        segments.startNumber = try element.number("startNumber")
        segments.endNumber = try element.number("endNumber")
        segments.timeOffset = try element.number("presentationTimeOffset")
        segments.media = element.attribute("media")
        segments.initializationTemplate = element.attribute("initialization")
        while let child = try nextChild() {
            switch child.name {
            case "Initialization":
                segments.initialization = DASHSegments.Initialization(
                    source: child.attribute("sourceURL"), range: try child.byteRange("range"))
                try skip()
            case "SegmentTimeline": segments.timeline = try timeline()
            case "SegmentURL":
                try count()
                segments.urls.append(
                    DASHSegments.SegmentURL(
                        media: child.attribute("media"), range: try child.byteRange("mediaRange")))
                try skip()
            default: try skip()
            }
        }
        return segments
    }

    private mutating func timeline() throws(MediaError) -> [DASHSegments.Entry] {
        var entries: [DASHSegments.Entry] = []
        while let child = try nextChild() {
            if child.name == "S" {
                try count()
                guard let duration = try child.positiveNumber("d") else {
                    throw .malformed("S@d", offset: child.offset)
                }
                entries.append(
                    DASHSegments.Entry(
                        offset: child.offset, time: try child.number("t"), duration: duration,
                        repetitions: try child.repetitions(), number: try child.number("n")))
            }
            try skip()
        }
        return entries
    }

    /// Counts an element that remains in memory.
    private mutating func count() throws(MediaError) {
        elementCount += 1
        guard elementCount <= limits.segments else { throw .tooLarge("segments") }
    }
}

/// Attribute values. The errors name the element and the attribute.
extension XMLReader.Element {
    private func malformed(_ attribute: String) -> MediaError {
        .malformed("\(String(name.prefix(64)))@\(attribute)", offset: offset)
    }

    /// The first 256 bytes of a value. Each representation uses the values of its adaptation set; longer ones would
    /// make the time quadratic.
    fileprivate func prefix(of attribute: String) -> String? {
        self.attribute(attribute).map { String(decoding: $0.utf8.prefix(256), as: UTF8.self) }
    }

    /// Whole number; nil if the attribute is absent. The fraction of a decimal number is ignored.
    fileprivate func number(_ attribute: String) throws(MediaError) -> Int64? {
        guard let text = self.attribute(attribute) else { return nil }
        let whole = text.utf8.prefix { $0 != UInt8(ascii: ".") }
        let fraction = text.utf8.dropFirst(whole.count + 1)
        guard let number = FieldText.number(whole), fraction.allSatisfy(FieldText.isDigit) else {
            throw malformed(attribute)
        }
        return number
    }

    /// Whole number above 0.
    fileprivate func positiveNumber(_ attribute: String) throws(MediaError) -> Int64? {
        guard let number = try number(attribute) else { return nil }
        guard number > 0 else { throw malformed(attribute) }
        return number
    }

    /// The attribute `r` of an element `S`; -1 for each negative number.
    fileprivate func repetitions() throws(MediaError) -> Int64 {
        guard let text = attribute("r") else { return 0 }
        let isNegative = text.utf8.first == UInt8(ascii: "-")
        guard let number = FieldText.clampedNumber(isNegative ? text.utf8.dropFirst() : text.utf8[...]) else {
            throw malformed("r")
        }
        return isNegative ? -1 : number
    }

    /// ISO 8601 duration in seconds.
    fileprivate func duration(_ attribute: String) throws(MediaError) -> Double? {
        guard let text = self.attribute(attribute) else { return nil }
        guard let duration = MediaText.duration(text) else { throw malformed(attribute) }
        return duration
    }

    /// An instant (XML Schema part 2 §3.2.7) in seconds since 1970; without an offset it is one of UTC. Nil if it is
    /// malformed.
    fileprivate func instant(_ attribute: String) -> Double? {
        guard let text = self.attribute(attribute), let time = RFC3339.parse(text) ?? RFC3339.parse(text + "Z") else {
            return nil
        }
        return Double(time.milliseconds) / 1000
    }

    fileprivate func byteRange(_ attribute: String) throws(MediaError) -> ByteRange? {
        guard let text = self.attribute(attribute) else { return nil }
        guard let range = MediaText.byteRange(text) else { throw malformed(attribute) }
        return range
    }

    /// Checks that the content of the element is not in another document.
    fileprivate func requireLocal() throws(MediaError) {
        if let reference = attribute("xlink:href"), reference != "urn:mpeg:dash:resolve-to-zero:2013" {
            throw .unsupported("xlink:href")
        }
    }
}
