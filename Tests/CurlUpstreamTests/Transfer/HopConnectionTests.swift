import CCurl
import CacheCore
import CacheTestKit
import Glibc
import Testing

@testable import CurlUpstream

@Suite(.timeLimit(.minutes(20)))
struct HopConnectionTests {
    private func connection(_ attempts: (address: String, milliseconds: Int)...) -> HopConnection {
        let zero = ContinuousClock.now
        var hop = HopConnection()
        hop.attempts = attempts.map { .init(address: $0.address, at: zero + .milliseconds($0.milliseconds)) }
        return hop
    }

    @Test("Addresses of the same family that were tried before the winner have failed")
    func earlierAddressesOfTheFamilyHaveFailed() {
        let hop = connection(("192.0.2.1", 0), ("192.0.2.2", 100), ("192.0.2.3", 101))
        #expect(hop.losers(against: "192.0.2.3") == ["192.0.2.1", "192.0.2.2"])
        #expect(hop.losers(against: "192.0.2.1") == [])
    }

    @Test("An address of the other family has failed if it lost in spite of its lead")
    func theOtherFamilyHasFailedInSpiteOfItsLead() {
        #expect(connection(("2001:db8::1", 0), ("192.0.2.1", 200)).losers(against: "192.0.2.1") == ["2001:db8::1"])
        #expect(connection(("2001:db8::1", 0), ("192.0.2.1", 1)).losers(against: "192.0.2.1") == [])
    }

    @Test("Each pass has one address of each family, and no address twice")
    func eachPassHasOneAddressOfEachFamily() {
        let order = ["192.0.2.1", "192.0.2.2", "2001:db8::1", "192.0.2.3"]
        var hop = HopConnection()
        var passes: [[String]] = []
        repeat {
            hop.choose(from: order)
            passes.append(hop.candidates)
        } while hop.exhaust()
        #expect(passes == [["192.0.2.1", "2001:db8::1"], ["192.0.2.2"], ["192.0.2.3"]])
    }

    @Test("The addresses of a family share the connect timeout, and the last attempt has the rest")
    func attemptsShareTheConnectTimeout() {
        let zero = ContinuousClock.now
        var timers = TransferTimers(timeouts(connect: .seconds(6)), begun: zero)
        timers.attemptBegan(of: 3, at: zero)
        #expect(timers.next?.at == zero + .seconds(2))
        timers.attemptBegan(of: 2, at: zero + .seconds(2))
        #expect(timers.next?.at == zero + .seconds(4))
        timers.attemptBegan(of: 1, at: zero + .seconds(4))
        #expect(timers.next?.at == zero + .seconds(6))
        timers.attemptBegan(of: 2, at: zero + .seconds(4))
        timers.connected(at: zero + .seconds(5))
        #expect(timers.next == nil)
    }

    @Test("A failure is local only if this machine reports it without the network")
    func aFailureIsLocalOnlyIfThisMachineReportsIt() {
        let hop = connection(("127.0.0.1", 0))
        #expect(hop.isLocal(EADDRNOTAVAIL) && hop.isLocal(ENOBUFS))
        #expect(!hop.isLocal(ECONNREFUSED) && !hop.isLocal(ETIMEDOUT))
        #expect(!hop.isLocal(ENETUNREACH), "a datagram socket can be connected to loopback")
    }

    @Test(
        "Local causes are named and are no evidence about the upstream",
        arguments: [(EADDRNOTAVAIL, "port"), (ENOBUFS, "buffers"), (EACCES, "firewall"), (ENETUNREACH, "This machine")])
    func localCausesAreNamed(_ code: Int32, _ word: String) {
        var failure = CurlError(code: CURLE_COULDNT_CONNECT, systemError: code)
        failure.isLocal = true
        let error = failure.cacheError(host: "media.example:80", isConnected: false)
        #expect(error.code == .upstreamUnreachable())
        #expect(error.isLocal && error.message.contains(word))
    }

    @Test("A name with a refused and a good address is read, and both are known")
    func aNameWithARefusedAddressIsRead() async throws {
        let upstream = try LoopbackUpstream()
        upstream.serve("/a", LoopbackAsset(size: 1000))
        let pool = CurlWorkerPool.forTest(workers: 1)
        let url = "http://localhost:\(upstream.port)/a"
        for _ in 0..<2 {
            let end = await pool.fetch(UpstreamRequest(url: url, allowPrivateAddresses: true)).end()
            #expect(end.error == nil && end.storedBytes == 1000)
        }
        #expect(upstream.connectionCount == 1, "the connection is kept")
        let good = pool.addresses(of: url).first { $0.address == "127.0.0.1" }
        #expect(good?.isSuspect == false && good?.connections == 1)
        #expect(!pool.isFailing(url))
        pool.shutdown()
    }

    @Test("A server that refuses connections is failing until it answers")
    func aServerThatRefusesConnectionsIsFailing() async throws {
        let pool = CurlWorkerPool.forTest(workers: 1)
        let listener = try LoopbackUpstream()
        let url = "http://127.0.0.1:1/a"
        let end = await pool.fetch(UpstreamRequest(url: url, allowPrivateAddresses: true)).end()
        #expect(end.error?.code == .upstreamUnreachable())
        #expect(pool.isFailing(url))
        #expect(!pool.isFailing(listener.url("/a")))
        #expect(pool.addresses(of: url).map(\.isSuspect) == [true])
        #expect(pool.addresses(of: url).first?.failures.last?.cause == "upstreamUnreachable")
        pool.shutdown()
    }
}
