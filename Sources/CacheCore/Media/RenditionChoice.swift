/// The rule by which one of several alternative renditions is selected.
package enum RenditionChoice: Hashable, Sendable {
    /// The lowest bit rate.
    case lowest
    /// The first one of the playlist, with which players begin.
    case first
    /// All renditions.
    case all
    /// The highest bit rate up to this limit; the lowest one if all are above it.
    case maxBitsPerSecond(Int64)

    /// The renditions in the order of preference. Renditions of unknown bit rate are last, except for `first`.
    func ordered(_ renditions: [MediaPlaylist.Rendition]) -> [MediaPlaylist.Rendition] {
        let keys: [Int64] = renditions.map { rendition in
            let rate = rendition.bitsPerSecond ?? .max
            switch self {
            case .first, .all: return 0
            case .lowest: return rate
            // Rates up to the limit come first, in descending order. Rates are not negative.
            case .maxBitsPerSecond(let limit): return rate <= limit && rate != .max ? -rate - 1 : rate
            }
        }
        let order = renditions.indices.sorted { (keys[$0], $0) < (keys[$1], $1) }
        return order.map { renditions[$0] }
    }
}
