/// A contiguous run of bytes of an asset: half open, with offsets from the asset's first byte.
package typealias ByteRange = Range<Int64>

extension Range where Bound == Int64 {
    /// The number of bytes in the range.
    package var length: Int64 { upperBound - lowerBound }

    /// The range of `length` bytes from `offset`. The end is clamped to `Int64.max` if the sum overflows; a negative
    /// length counts as 0.
    package init(offset: Int64, length: Int64) {
        let (end, overflow) = offset.addingReportingOverflow(Swift.max(0, length))
        self = offset..<(overflow ? Int64.max : end)
    }

    /// The part of the range before `length`; empty if it begins there or later.
    package func cutOff(at length: Int64) -> ByteRange { clamped(to: 0..<Swift.max(length, lowerBound)) }

    /// The value of a `Range` field for this range, which must not be empty (RFC 9110 §14.2).
    package var fieldValue: String { "bytes=\(lowerBound)-\(upperBound - 1)" }

    /// The first bytes of the range, at most `most`.
    package func prefix(_ most: Int64) -> ByteRange { lowerBound..<(length > most ? lowerBound + most : upperBound) }
}

extension Sequence<ByteRange> {
    /// The sum of the lengths.
    package var byteCount: Int64 { reduce(0) { $0 + $1.length } }
}
