package import CacheCore

extension PlayRequest: Decodable {
    private struct Document: Decodable {
        var startSeconds: Omittable<Limited<SignedSeconds>>
        var seconds: Limited<SecondsAboveZero>?
        var tracks: Tracks?
        var renditions: RenditionChoice?
        var keys: Bool?
        var otherwise: Otherwise?
    }

    /// `all`, or a list of kinds.
    private struct Tracks: Decodable {
        /// Nil: all.
        var kinds: [TrackKind]?

        init(from decoder: any Decoder) throws {
            if try JSON(from: decoder) == "all" { return }
            kinds = try List<4, TrackKind>(from: decoder).values
            if kinds == [] { throw decoder.invalid("\"all\" or a list of kinds is expected here.") }
        }
    }

    /// The members of the schema.
    package static var keys: [String] { JSON.keys(of: Document.self) }

    /// Reads the `PlayRequest` schema. Without `seconds` it is that of a live playlist.
    package init(from decoder: any Decoder) throws {
        let document = try Document(from: decoder)
        let start = document.startSeconds.value?.value
        let length = document.seconds?.value ?? Self.maxSeconds
        self.init(
            time: (start ?? 0)..<(start ?? 0) + length, hasStart: start != nil,
            kinds: document.tracks?.kinds.map(Set.init),
            renditions: document.renditions ?? .lowest, includesKeys: document.keys ?? true,
            otherwise: document.otherwise ?? .fail, isLive: document.seconds == nil)
    }
}

extension RenditionChoice: Decodable {
    private struct Filter: Decodable {
        var maxBitsPerSecond: Limited<Positive>?
        var maxHeight: Limited<Positive>?
        var language: Checked<LanguageRule>?
        var codecs: Checked<CodecRule>?
    }

    private enum LanguageRule: TextRule {
        static let expectation = "A language tag like de or pt-BR is expected here."
        static func permits(_ text: String) -> Bool { RenditionFilter.isLanguage(text) }
    }

    private enum CodecRule: TextRule {
        static let expectation = "The beginning of a codec like avc1 is expected here."
        static func permits(_ text: String) -> Bool { RenditionFilter.isCodec(text) }
    }

    /// Reads a word, or the required properties.
    package init(from decoder: any Decoder) throws {
        switch try JSON(from: decoder) {
        case "lowest": self = .lowest
        case "first": self = .first
        case "all": self = .all
        case .object:
            let read = try Filter(from: decoder)
            let filter = RenditionFilter(
                maxBitsPerSecond: read.maxBitsPerSecond?.value, maxHeight: read.maxHeight?.value,
                language: read.language?.text, codecs: read.codecs?.text)
            guard filter != RenditionFilter() else {
                throw decoder.invalid("One of maxBitsPerSecond, maxHeight, language and codecs is expected here.")
            }
            if let rate = filter.maxBitsPerSecond, filter == RenditionFilter(maxBitsPerSecond: rate) {
                self = .maxBitsPerSecond(rate)
            } else {
                self = .matching(filter)
            }
        default:
            throw decoder.invalid("\"lowest\", \"first\", \"all\" or {\"maxBitsPerSecond\": …} is expected here.")
        }
    }
}
