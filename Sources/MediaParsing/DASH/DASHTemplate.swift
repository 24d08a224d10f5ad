import CacheCore

/// A URL template of a `SegmentTemplate` (ISO/IEC 23009-1 §5.3.9.4.4).
struct DASHTemplate {
    private enum Part {
        case literal(String)
        case number(width: Int)
        case time(width: Int)
    }

    /// The maximum width of a formatted number.
    private static let widthLimit = 32
    /// The maximum number of literals and identifiers.
    private static let pieceLimit = 128

    private var parts: [Part] = []
    /// The number of bytes without the numbers.
    private var literalBytes = 0

    /// Parses a template and inserts the values that are equal for all segments.
    ///
    /// Throws `.malformed("SegmentTemplate")` at `offset` for an unknown identifier or too many of them, and
    /// `.tooLarge("playlist")` if the text exceeds `byteLimit` with the inserted values.
    init(
        _ text: String, of representation: DASHManifest.Representation, offset: Int64, byteLimit: Int
    ) throws(MediaError) {
        let malformed = MediaError.malformed("SegmentTemplate", offset: offset)
        let pieces = text.utf8.split(
            separator: UInt8(ascii: "$"), maxSplits: Self.pieceLimit, omittingEmptySubsequences: false)
        guard pieces.count % 2 == 1, pieces.count <= Self.pieceLimit else { throw malformed }
        for (index, piece) in pieces.enumerated() {
            let piece = Substring(piece)
            guard index % 2 == 1 else {
                try append(String(piece), byteLimit: byteLimit)
                continue
            }
            if piece.isEmpty {
                try append("$", byteLimit: byteLimit)
                continue
            }
            if piece == "RepresentationID" {
                guard let id = representation.id else { throw malformed }
                try append(id, byteLimit: byteLimit)
                continue
            }
            let parts = piece.split(separator: "%", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = parts.first, let width = parts.count == 2 ? Self.width(parts[1]) : 0 else {
                throw malformed
            }
            switch name {
            case "Number": self.parts.append(.number(width: width))
            case "Time": self.parts.append(.time(width: width))
            case "Bandwidth":
                guard let bandwidth = representation.bandwidth else { throw malformed }
                try append(FieldText.padded(bandwidth, width), byteLimit: byteLimit)
            case "SubNumber": throw .unsupported("$SubNumber$")
            default: throw malformed
            }
        }
    }

    /// Whether the template contains `$Number$` or `$Time$`.
    var hasVariables: Bool {
        parts.contains { if case .literal = $0 { false } else { true } }
    }

    /// The URL for a segment. `time` is in units of the timescale.
    func expanded(number: Int64, time: Int64) -> String {
        var text = ""
        text.reserveCapacity(literalBytes + 16)
        for part in parts {
            switch part {
            case .literal(let literal): text += literal
            case .number(let width): text += FieldText.padded(number, width)
            case .time(let width): text += FieldText.padded(time, width)
            }
        }
        return text
    }

    /// Appends a literal. Adjacent literals are merged.
    private mutating func append(_ literal: String, byteLimit: Int) throws(MediaError) {
        literalBytes += literal.utf8.count
        guard literalBytes <= byteLimit else { throw .tooLarge("playlist") }
        if literal.isEmpty { return }
        if case .literal(var last) = parts.last {
            parts.removeLast()
            last += literal
            parts.append(.literal(last))
        } else {
            parts.append(.literal(literal))
        }
    }

    /// The width of a format `0[width]d` or `d`; nil if the format is invalid.
    private static func width(_ format: Substring) -> Int? {
        guard format.utf8.last == UInt8(ascii: "d") else { return nil }
        let digits = format.dropLast()
        if digits.isEmpty { return 0 }
        guard let width = FieldText.number(digits.utf8), width <= widthLimit else { return nil }
        return Int(width)
    }
}
