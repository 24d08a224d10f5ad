import CacheCore
import CacheEngine
import Hummingbird
import ReaderAccess

/// Routes for the other nodes of the fleet, and for the departure of this one.
struct FleetController: Controller {
    let cache: AssetCache
    let live: LiveAPISettings

    static let routes: [Route<Self>] = [
        Route(.get, "/v1/fleet", .scope(.read)) { controller, _, _ in .json(controller.document) },
        Route(.post, "/v1/fleet/leave", .scope(.admin)) { controller, _, _ in
            controller.cache.leaveFleet(true)
            return .json(controller.document)
        },
        Route(.post, "/v1/fleet/join", .scope(.admin)) { controller, _, _ in
            controller.cache.leaveFleet(false)
            return .json(controller.document)
        },
    ]

    private var document: FleetDocument {
        FleetDocument(
            node: cache.reader.loopName, state: cache.readiness.rawValue, acceptsPeers: live.values.peers.isEnabled,
            peers: cache.peers.figures.map(FleetDocument.Peer.init))
    }
}
