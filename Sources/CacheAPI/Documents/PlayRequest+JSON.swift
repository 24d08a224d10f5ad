package import CacheCore

extension PlayRequest: Decodable {
    private struct Document: Decodable {
        var startSeconds: Limited<SignedSeconds>?
        var seconds: Limited<SecondsAboveZero>?
        var tracks: Tracks?
        var renditions: RenditionChoice?
        var keys: Bool?
        var otherwise: Otherwise?
    }

    /// `all`, or a list of kinds.
    private struct Tracks: Decodable {
        /// Nil: all.
        var kinds: [MediaIndex.TrackKind]?

        init(from decoder: any Decoder) throws {
            if try JSON(from: decoder) == "all" { return }
            kinds = try List<4, MediaIndex.TrackKind>(from: decoder).values
            if kinds == [] { throw decoder.invalid("\"all\" or a list of kinds is expected here.") }
        }
    }

    /// The members of the schema.
    package static var keys: [String] { JSON.keys(of: Document.self) }

    /// Reads the `PlayRequest` schema.
    package init(from decoder: any Decoder) throws {
        let document = try Document(from: decoder)
        let start = document.startSeconds?.value
        guard let length = document.seconds?.value else {
            throw decoder.invalid("The number of seconds to play is missing.", at: "seconds")
        }
        self.init(
            time: (start ?? 0)..<(start ?? 0) + length, hasStart: start != nil,
            kinds: document.tracks?.kinds.map(Set.init),
            renditions: document.renditions ?? .lowest, includesKeys: document.keys ?? true,
            otherwise: document.otherwise ?? .fail)
    }

    /// The `PlayRequest` schema, with all members.
    var json: JSON {
        let renditions: JSON =
            if case .maxBitsPerSecond(let rate) = renditions { ["maxBitsPerSecond": .integer(rate)] } else {
                .string(self.renditions.text)
            }
        let tracks = kinds.map { JSON.array($0.map(\.rawValue).sorted().map(JSON.string)) } ?? "all"
        return [
            "startSeconds": hasStart ? .number(time.lowerBound) : .null,
            "seconds": .number(time.upperBound - time.lowerBound),
            "tracks": tracks, "renditions": renditions, "keys": .bool(includesKeys),
            "otherwise": .string(otherwise.rawValue),
        ]
    }
}

extension RenditionChoice: Decodable {
    private struct Limit: Decodable { var maxBitsPerSecond: Limited<Positive>? }

    /// Reads a word, or the largest bit rate.
    package init(from decoder: any Decoder) throws {
        switch try JSON(from: decoder) {
        case "lowest": self = .lowest
        case "first": self = .first
        case "all": self = .all
        case .object:
            guard let rate = try Limit(from: decoder).maxBitsPerSecond?.value else {
                throw decoder.invalid("The number of bits per second is missing.", at: "maxBitsPerSecond")
            }
            self = .maxBitsPerSecond(rate)
        default:
            throw decoder.invalid("\"lowest\", \"first\", \"all\" or {\"maxBitsPerSecond\": …} is expected here.")
        }
    }
}

extension PlayResult {
    /// The `media` member of a job item; nil if the item has no usable index.
    var json: JSON {
        guard let container, let layout else { return .null }
        return [
            "container": .string(container), "layout": .string(layout),
            "durationSeconds": .optional(duration) { .number($0) },
        ]
    }
}
