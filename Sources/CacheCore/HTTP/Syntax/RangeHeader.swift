/// A parsed `Range` field (RFC 9110 §14.2), before the length of the asset is known.
package enum RangeHeader: Hashable, Sendable {
    /// One `range-spec` (§14.1.2). Positions count from 0; `last` is inclusive.
    package enum Spec: Hashable, Sendable {
        case closed(first: Int64, last: Int64)
        case from(first: Int64)
        /// The last n bytes.
        case suffix(Int64)
    }

    /// The ranges for an asset of known length.
    package enum Resolved: Hashable, Sendable {
        /// Respond as without a `Range` field.
        case whole
        /// One or more runs in the requested order; none is empty, and none overlaps or touches another.
        case runs([ByteRange])
        /// No range overlaps the asset: respond with 416.
        case unsatisfiable
    }

    case absent
    /// Present, but treated as absent: another unit, invalid syntax, a reversed range, or more than `maxSpecs` ranges.
    case ignored
    case ranges([Spec])

    /// The maximum number of ranges in a field. A field with more is ignored as a likely attack.
    package static let maxSpecs = 256
    /// The maximum number of runs in one response; for more, the response is the whole asset.
    static let maxRuns = 16

    /// Parses the value of the field; nil: the field is absent. Positions that overflow `Int64` are clamped: a last
    /// position then means the end, and a first position is beyond every asset.
    package static func parse(_ text: String?) -> RangeHeader {
        guard let text else { return .absent }
        let value = FieldText.trimmed(text[...])
        guard let equals = value.utf8.firstIndex(of: UInt8(ascii: "=")),
            FieldText.lowered(value[..<equals]) == "bytes"
        else { return .ignored }
        let set = value[value.utf8.index(after: equals)...]
        var specs: [Spec] = []
        for piece in set.utf8.split(separator: UInt8(ascii: ","), maxSplits: maxSpecs) {
            let member = FieldText.trimmed(Substring(piece))
            if member.isEmpty { continue }  // empty list elements are allowed (§5.6.1.2)
            guard specs.count < maxSpecs, let spec = Spec(member) else { return .ignored }
            specs.append(spec)
        }
        return specs.isEmpty ? .ignored : .ranges(specs)
    }

    /// Resolves the ranges for an asset of `length` bytes. Ranges outside of the asset are dropped. Overlapping or
    /// touching ranges are merged at the position of the first one. The result is the whole asset for more than
    /// `maxRuns` runs, or if the ranges together exceed the asset.
    package func resolve(length: Int64) -> Resolved {
        guard case .ranges(let specs) = self else { return .whole }
        let length = max(0, length)
        let satisfiable = specs.compactMap { $0.run(length: length) }
        guard !satisfiable.isEmpty else { return .unsatisfiable }
        var room = length
        for run in satisfiable {
            guard !run.isEmpty, run.length <= room else { return .whole }
            room -= run.length
        }
        let runs = Self.joined(satisfiable)
        return runs.count > Self.maxRuns ? .whole : .runs(runs)
    }

    /// Merges overlapping or touching runs. A merged run has the position of its first part in the request.
    private static func joined(_ runs: [ByteRange]) -> [ByteRange] {
        guard runs.count > 1 else { return runs }
        let byStart = runs.enumerated().sorted { $0.element.lowerBound < $1.element.lowerBound }
        var groups: [(order: Int, run: ByteRange)] = []
        for (order, run) in byStart {
            if let last = groups.last, run.lowerBound <= last.run.upperBound {
                let end = max(last.run.upperBound, run.upperBound)
                groups[groups.count - 1] = (min(last.order, order), last.run.lowerBound..<end)
            } else {
                groups.append((order, run))
            }
        }
        return groups.sorted { $0.order < $1.order }.map(\.run)
    }
}

/// Parsing and resolving of one range.
extension RangeHeader.Spec {
    /// Nil if `text` is not a valid `range-spec`, or a reversed one.
    fileprivate init?(_ text: Substring) {
        guard let dash = text.utf8.firstIndex(of: UInt8(ascii: "-")) else { return nil }
        let before = text.utf8[..<dash]
        let after = text.utf8[text.utf8.index(after: dash)...]
        switch (FieldText.clampedNumber(before), FieldText.clampedNumber(after)) {
        case (let first?, let last?) where first <= last: self = .closed(first: first, last: last)
        case (let first?, nil) where after.isEmpty: self = .from(first: first)
        case (nil, let count?) where before.isEmpty: self = .suffix(count)
        default: return nil
        }
    }

    /// The run in an asset of `length` bytes; nil if it is unsatisfiable (§14.1.2). It is empty only for a suffix of an
    /// empty asset, which that section defines as satisfiable.
    package func run(length: Int64) -> ByteRange? {
        let length = max(0, length)
        switch self {
        case .closed(let first, let last): return first < length ? first..<min(last, length - 1) + 1 : nil
        case .from(let first): return first < length ? first..<length : nil
        case .suffix(let count): return count > 0 ? max(0, length - count)..<length : nil
        }
    }
}
