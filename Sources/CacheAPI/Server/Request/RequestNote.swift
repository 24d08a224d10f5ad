import CacheEngine
import Synchronization

/// What is found out about a request while it is answered, for its line in the access log.
package final class RequestNote: Sendable {
    package struct Content: Sendable {
        /// How the read was answered: `hit`, `miss`, ….
        package var outcome: String?
        package var sentBytes: Int64 = 0
        package var bytesFromCache: Int64 = 0
        package var bytesFromUpstream: Int64 = 0
        /// From the request's head to the first byte of the body.
        package var firstByte: Duration?
        /// Whether the response came to its end.
        package var isComplete = false
    }

    private let state = Mutex(Content())
    private let place = Mutex<Places.Place?>(nil)

    package init() {}

    package var content: Content { state.withLock { $0 } }

    /// The request has `place` as long as anybody holds the note.
    func hold(_ place: Places.Place) { self.place.withLock { $0 = place } }

    /// What the read sent.
    func add(_ tally: ReadTally) {
        update { content in
            content.bytesFromCache = tally.bytesFromCache
            content.bytesFromUpstream = tally.bytesAfterFill
        }
    }

    package func update(_ change: (inout Content) -> Void) { state.withLock { change(&$0) } }
}
