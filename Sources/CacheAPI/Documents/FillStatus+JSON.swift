package import CacheCore
package import CacheEngine

extension FillStatus {
    /// The `Fill` schema.
    package var json: JSON {
        [
            "fillId": .string(String(number)), "assetId": .string(assetID.description), "key": .string(key),
            "origin": .string(origin), "kind": .string(kind.rawValue), "range": .optional(range, JSON.span),
            "positionBytes": .integer(position), "bytesPerSecond": .integer(progress.bytesPerSecond),
            "readers": .count(readers), "state": .string(progress.stage.rawValue),
            "priority": .string(progress.priority.name), "attempt": .count(progress.attempt),
            "isHedged": .bool(progress.isHedged), "upstreamAddress": .text(progress.address),
            "protocol": .optional(progress.httpVersion) { .string("HTTP/" + $0) },
            "startedAt": .instant(progress.startedAt),
        ]
    }
}

extension TransferPriority {
    /// The priority's name in the API.
    package var name: String {
        switch self {
        case .live: "live"
        case .readAhead: "readAhead"
        case .prefetch: "prefetch"
        }
    }
}

extension JSON {
    /// A range with a known or unknown end. An unknown end is `Int64.max`, and the length is then null.
    static func span(_ range: ByteRange) -> JSON {
        [
            "offset": .integer(range.lowerBound),
            "length": range.upperBound == .max ? .null : .integer(range.length),
        ]
    }
}
