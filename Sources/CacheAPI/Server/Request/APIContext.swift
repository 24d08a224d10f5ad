package import CacheCore
package import Hummingbird
import Logging

/// What accompanies one request through the counter.
package struct APIContext: RequestContext {
    package var coreContext: CoreRequestContextStorage
    /// Filled on the way, for the access log.
    package let note: RequestNote
    /// Set before any route sees the request.
    package var requestID = ""
    /// Set with it: since when the request is answered.
    package var stopwatch = Stopwatch(ContinuousClock())
    let presence: ClientPresence?
    let bodyDoor: BodyLane.Door?

    package init(source: ApplicationRequestContextSource) {
        coreContext = .init(source: source)
        note = RequestNote()
        presence = ClientPresence.current
        bodyDoor = BodyLane.Door.current
    }

    /// A path parameter; every route that asks has it in its pattern.
    package func parameter(_ name: String) throws(CacheError) -> String {
        guard let value = parameters.get(name) else { throw CacheError(.notFound, "There is nothing here.") }
        return value
    }

    /// The asset the path names; what cannot be an identifier names none.
    package func assetID() throws(CacheError) -> AssetID {
        guard let id = AssetID(try parameter("assetId")) else {
            throw CacheError(.notFound, "There is no such asset.")
        }
        return id
    }
}
