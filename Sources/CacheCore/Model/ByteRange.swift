/// A run of bytes of an asset: half open, offsets from the asset's first byte.
package typealias ByteRange = Range<Int64>

extension Range where Bound == Int64 {
    /// The number of bytes in the run.
    package var length: Int64 { upperBound - lowerBound }

    /// The run of `length` bytes from `offset`; the end is clamped to `Int64.max` where the sum would overflow.
    package init(offset: Int64, length: Int64) {
        let (end, overflow) = offset.addingReportingOverflow(Swift.max(0, length))
        self = offset..<(overflow ? Int64.max : end)
    }

    /// The run without the part behind an end at `length`.
    package func cutOff(at length: Int64) -> ByteRange { clamped(to: 0..<Swift.max(length, lowerBound)) }

    /// The first bytes of the run, at most `most`.
    package func prefix(_ most: Int64) -> ByteRange { lowerBound..<(length > most ? lowerBound + most : upperBound) }
}

extension Sequence<ByteRange> {
    /// The sum of the runs' lengths.
    package var byteCount: Int64 { reduce(0) { $0 + $1.length } }
}
