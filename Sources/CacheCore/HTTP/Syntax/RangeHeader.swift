/// What a request's `Range` asks for (RFC 9110 §14.2), before the asset's length is known.
package enum RangeHeader: Hashable, Sendable {
    /// One `range-spec` (§14.1.2); positions count from 0, `last` is inclusive.
    package enum Spec: Hashable, Sendable {
        case closed(first: Int64, last: Int64)
        case from(first: Int64)
        /// The last so many bytes.
        case suffix(Int64)
    }

    /// What the ranges mean for an asset of known length.
    package enum Resolved: Hashable, Sendable {
        /// Answer as if no range had been asked for.
        case whole
        /// At least one run, in the order asked for; none is empty, and no two touch.
        case runs([ByteRange])
        /// None of the ranges lies in the asset: 416.
        case unsatisfiable
    }

    case absent
    /// Present, but to be treated as absent: another unit, broken syntax, a reversed range, or far too many of them.
    case ignored
    case ranges([Spec])

    /// As many ranges as a header may hold before it is taken for an attack and ignored.
    package static let maxSpecs = 256
    /// As many runs as one answer has; more are answered by the whole asset.
    package static let maxRuns = 16

    /// Reads a header's value; nil is no header. A last position too large to count is the largest one; a first
    /// position too large is past the end of everything.
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

    /// The runs of an asset of `length` bytes. Ranges outside it are dropped, overlapping and touching ones joined at
    /// the place of the first. More than `maxRuns` runs, or ranges that together exceed the asset, give the whole.
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

    /// Joins what overlaps or touches; a joined run stands where the first of its parts stood.
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

extension RangeHeader.Spec {
    /// Nil where `text` is no `range-spec`, or a reversed one.
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

    /// The run it names in an asset of `length` bytes; nil where it is unsatisfiable (§14.1.2). Empty only for a suffix
    /// of an empty asset, which is satisfiable by that section's letter.
    package func run(length: Int64) -> ByteRange? {
        let length = max(0, length)
        switch self {
        case .closed(let first, let last): return first < length ? first..<min(last, length - 1) + 1 : nil
        case .from(let first): return first < length ? first..<length : nil
        case .suffix(let count): return count > 0 ? max(0, length - count)..<length : nil
        }
    }
}
