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
    /// Of the renditions with these properties: the highest bit rate if the filter has a maximum, else the lowest.
    case matching(RenditionFilter)
}
