/// What a reader that waits for bytes, or for the asset's description, is told.
package enum WaitOutcome: Hashable, Sendable {
    /// There are bytes for it, or news of the asset: it should look again.
    case arrived
    /// The fill that was to bring its bytes is over without them, and the next one has been begun in its name: it waits on.
    case writerVanished
    /// It has waited as long as it may.
    case deadlinePassed
    /// Nothing more is tried for it: the retries are spent, or somebody has refused.
    case gaveUp(CacheError.Code)
    /// The upstream's bytes are others now than those it began with.
    case generationChanged
    case shuttingDown

    /// The outcome of a wait that `code` has ended.
    package init(_ code: CacheError.Code) {
        switch code {
        case .assetChanged: self = .generationChanged
        case .shuttingDown: self = .shuttingDown
        default: self = .gaveUp(code)
        }
    }

    /// Why the reader's answer cannot go on; nil where it can.
    package var failure: CacheError.Code? {
        switch self {
        case .arrived, .writerVanished: nil
        case .deadlinePassed: .upstreamTimedOut(.read)
        case .gaveUp(let code): code
        case .generationChanged: .assetChanged
        case .shuttingDown: .shuttingDown
        }
    }

    /// Its name in statistics.
    package var name: String {
        switch self {
        case .arrived: "arrived"
        case .writerVanished: "writerVanished"
        case .deadlinePassed: "deadlinePassed"
        case .gaveUp: "gaveUp"
        case .generationChanged: "generationChanged"
        case .shuttingDown: "shuttingDown"
        }
    }
}
