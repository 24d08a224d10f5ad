/// The point of an asset whose passing by a reader starts a job, such as that of the next episode.
package struct JobTrigger: Hashable, Codable, Sendable {
    package var assetID: AssetID
    /// The name of the asset as the client gave it, without a query; nil: by its identifier.
    package var origin, path: String?
    /// The place of the point: a percentage of the length.
    package var percent: Double
    /// The time when a reader has passed it; nil: none has.
    package var passedAt: Timestamp?

    package init(assetID: AssetID, origin: String? = nil, path: String? = nil, percent: Double) {
        self.assetID = assetID
        (self.origin, self.path) = (origin, path)
        self.percent = percent
    }
}

/// The progress of the readers of one asset towards a point.
///
/// Players of a file with its index at the end read that first. Therefore bytes behind the point count only if a reader comes
/// from before the point, or if many of them were read.
package struct ReadPoint: Hashable, Sendable {
    /// The bytes behind the point that were read without passing it, which count as passing it.
    private static let leastBehind: Int64 = 4 << 20

    package let percent: Double
    private var behind: Int64 = 0

    package init(percent: Double) { self.percent = percent }

    /// Notes that a reader got a range. Returns whether the point is passed.
    package mutating func note(_ range: ByteRange, length: Int64) -> Bool {
        let point = Int64((Double(length) * percent / 100).rounded(.up))
        if range.upperBound >= point, range.lowerBound < point || point == 0 { return true }
        guard range.lowerBound >= point else { return false }
        behind += range.length
        return behind >= min(Self.leastBehind, max(1, (length - point) / 2))
    }
}
