/// The result of a reader's wait for bytes or for the asset's description.
package enum WaitOutcome: Hashable, Sendable {
    /// Bytes or a description may be available: the reader must call `presence` again.
    case arrived
    /// The fill ended early, and the next one was started for this reader: the reader keeps waiting.
    case retrying
    /// The wait exceeded its limit.
    case timedOut
    /// The wait failed: the retries are exhausted, or the upstream or an administrator refused.
    case failed(CacheError.Code)
    /// The upstream's bytes are of another generation than those that the reader has received.
    case generationChanged
    /// The service stops.
    case shuttingDown

    /// The outcome of a wait that `code` has ended.
    package init(_ code: CacheError.Code) {
        switch code {
        case .assetChanged: self = .generationChanged
        case .shuttingDown: self = .shuttingDown
        default: self = .failed(code)
        }
    }

    /// The error that ends the response; nil if the reader can continue.
    package var failure: CacheError.Code? {
        switch self {
        case .arrived, .retrying: nil
        case .timedOut: .upstreamTimedOut(.read)
        case .failed(let code): code
        case .generationChanged: .assetChanged
        case .shuttingDown: .shuttingDown
        }
    }

    /// The name in statistics and metric labels.
    package var name: String {
        switch self {
        case .arrived: "arrived"
        case .retrying: "retrying"
        case .timedOut: "timedOut"
        case .failed: "failed"
        case .generationChanged: "generationChanged"
        case .shuttingDown: "shuttingDown"
        }
    }

    /// The names of all outcomes.
    package static let names = [
        WaitOutcome.arrived, .retrying, .timedOut, .failed(.internal), .generationChanged, .shuttingDown,
    ].map(\.name)
}
