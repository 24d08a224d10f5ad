package import CacheCore

extension PlayRequest {
    /// The members of the schema.
    package static let keys = ["startSeconds", "seconds", "tracks", "renditions", "keys", "otherwise"]
    /// Reads the `PlayRequest` schema.
    init(_ json: JSON, at path: String) throws(CacheError) {
        let fields = try JSONFields(json, at: path, accepting: Self.keys)
        let start = try fields.number("startSeconds", in: 0...PlayRequest.maxSeconds) ?? 0
        guard let length = try fields.number("seconds", in: 0.001...PlayRequest.maxSeconds) else {
            throw fields.invalid("seconds", "The number of seconds to play is missing.")
        }
        self.init(
            time: start..<start + length, kinds: try Self.kinds(fields), renditions: try Self.renditions(fields),
            includesKeys: try fields.bool("keys") ?? true, otherwise: try fields.choice("otherwise") ?? .fail)
    }

    /// Reads `tracks`: `all`, or a list of kinds.
    private static func kinds(_ fields: JSONFields) throws(CacheError) -> Set<MediaIndex.TrackKind>? {
        if fields.json("tracks") == "all" { return nil }
        let names = MediaIndex.TrackKind.allCases.map(\.rawValue).joined(separator: ", ")
        let kinds = try fields.values("tracks", atMost: 4, "One of \(names) is expected here.") {
            MediaIndex.TrackKind(rawValue: $0)
        }
        guard kinds?.isEmpty != true else {
            throw fields.invalid("tracks", "\"all\" or a list of kinds is expected here.")
        }
        return kinds.map(Set.init)
    }

    /// Reads `renditions`: a word, or the largest bit rate.
    private static func renditions(_ fields: JSONFields) throws(CacheError) -> RenditionChoice {
        switch fields.json("renditions") {
        case nil, "lowest"?: return .lowest
        case "first"?: return .first
        case "all"?: return .all
        case .object?:
            let inner = try JSONFields(
                fields.json("renditions") ?? .null, at: fields.name("renditions"), accepting: ["maxBitsPerSecond"])
            guard let rate = try inner.integer("maxBitsPerSecond", in: 1...Int64.max) else {
                throw inner.invalid("maxBitsPerSecond", "The number of bits per second is missing.")
            }
            return .maxBitsPerSecond(rate)
        default:
            throw fields.invalid(
                "renditions", "\"lowest\", \"first\", \"all\" or {\"maxBitsPerSecond\": …} is expected here.")
        }
    }

    /// The `PlayRequest` schema, with all members.
    var json: JSON {
        let renditions: JSON =
            if case .maxBitsPerSecond(let rate) = renditions { ["maxBitsPerSecond": .integer(rate)] } else {
                .string(self.renditions.text)
            }
        let tracks = kinds.map { JSON.array($0.map(\.rawValue).sorted().map(JSON.string)) } ?? "all"
        return [
            "startSeconds": .number(time.lowerBound), "seconds": .number(time.upperBound - time.lowerBound),
            "tracks": tracks, "renditions": renditions, "keys": .bool(includesKeys),
            "otherwise": .string(otherwise.rawValue),
        ]
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
