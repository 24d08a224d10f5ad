import CacheCore
@testable import CacheEngine
import CacheTestKit
import CurlUpstream
import Logging
import Testing

@Suite("The other nodes of a fleet")
struct PeerNodesTests {
    private let nodes: PeerNodes

    init() {
        let logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
        nodes = PeerNodes(
            upstream: ManualUpstream(parser: CurlWorkerPool(clock: ContinuousClock(), logger: logger)), loopName: "own",
            uptime: { .zero }, wallClock: ManualWallClock(), logger: logger)
    }

    @Test("Copies from before a purge count again once the fleet's number of purges tells which nodes have applied it")
    func numberTakesThePlaceOfTimes() {
        nodes.applied(purges: 7, contact: .zero, isAll: true)
        nodes.purged("media")
        #expect(nodes.lastPurge(of: "media") != nil && nodes.lastPurge(of: "other") == nil)

        nodes.applied(purges: 8, contact: .zero, isAll: false)
        #expect(nodes.lastPurge(of: "media") != nil)

        nodes.applied(purges: 9, contact: .zero, isAll: true)
        #expect(nodes.lastPurge(of: "media") == nil)
        #expect(nodes.hasApplied("9;lag=3") && !nodes.hasApplied("8;lag=3") && !nodes.hasApplied(nil))
    }

    @Test("A node that is new in a fleet without purges accepts the copies of the others at once")
    func newNodeAcceptsCopies() {
        nodes.applied(purges: 0, contact: nil, isAll: true)
        nodes.purged(nil)
        nodes.applied(purges: 0, contact: .zero, isAll: true)
        #expect(nodes.lastPurge(of: "media") != nil)

        nodes.joined()

        #expect(nodes.lastPurge(of: "media") == nil)
    }
}
