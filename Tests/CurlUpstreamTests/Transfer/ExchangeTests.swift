import CacheCore
import CacheTestKit
import Logging
import Testing

@testable import CurlUpstream

/// Requests whose response is kept in memory as a whole, and requests for a head.
@Suite struct ExchangeTests {
    private let pool = CurlWorkerPool.forTest()
    private let scripted: ManualUpstream
    private let request = UpstreamRequest(url: "http://127.0.0.1/a?secret")

    init() { scripted = ManualUpstream(parser: pool) }

    /// The result of an exchange with the scripted upstream.
    private func result(bodyLimit: Int = 10) async -> Result<UpstreamResponse, CacheError> {
        do throws(CacheError) {
            return .success(try await scripted.exchange(request, bodyLimit: bodyLimit))
        } catch {
            return .failure(error)
        }
    }

    private func headResult() async -> Result<UpstreamHead, ProbeFailure> {
        do throws(ProbeFailure) {
            return .success(try await scripted.head(of: request))
        } catch {
            return .failure(error)
        }
    }

    @Test("The response of an exchange has status, fields and the whole body")
    func completeResponse() async throws {
        async let result = result(bodyLimit: 4)
        let transfer = await scripted.transfer(0)
        transfer.leaveQueue()
        transfer.answer(404, ["X-A": "b"])
        try transfer.bring([1, 2])
        try transfer.bring([3, 4])
        transfer.end()

        let response = try await result.get()
        #expect(response.status == 404)
        #expect(response.headers["X-A"] == "b")
        #expect(response.body == [1, 2, 3, 4])
    }

    @Test("A body above the limit is refused at the first byte too many")
    func longBody() async throws {
        async let result = result(bodyLimit: 3)
        let transfer = await scripted.transfer(0)
        transfer.answer(200, [:])
        try transfer.bring([1, 2, 3])
        let error = #expect(throws: CacheError.self) { try transfer.bring([4]) }
        transfer.end(error?.code)

        #expect(error?.code == .upstreamUnusable())
        #expect(error?.message == "The response has more than 3 bytes.")
        #expect(await result.failure?.code == .upstreamUnusable())
    }

    @Test("A response that breaks after its head fails an exchange, and not a request for the head")
    func brokenResponse() async throws {
        async let response = result()
        let transfer = await scripted.transfer(0)
        transfer.answer(200, [:])
        try transfer.bring([1])
        transfer.end(.upstreamProtocol)
        async let head = headResult()
        let second = await scripted.transfer(1)
        let takesBody = second.answer(200, [:])
        second.end(.upstreamProtocol)

        #expect(await response.failure?.code == .upstreamProtocol)
        #expect(!takesBody)
        #expect(try await head.get().status == 200)
    }

    @Test("A transfer that ends without a head is a failure")
    func missingHead() async {
        async let response = result()
        await scripted.transfer(0).end()
        async let head = headResult()
        await scripted.transfer(1).end()

        #expect(await response.failure?.code == .upstreamProtocol)
        #expect(await head.failure?.error.message == "The upstream sent no response.")
    }

    @Test("The cancellation of the task cancels the transfer")
    func cancellation() async throws {
        let code = try await withThrowingTaskGroup(of: CacheError.Code?.self) { group in
            group.addTask { await result().failure?.code }
            let transfer = await scripted.transfer(0)
            group.cancelAll()
            #expect(try await eventually { transfer.isCancelled })
            transfer.end(.cancelled)
            return try await group.next() ?? nil
        }

        #expect(code == .cancelled)
    }

    @Test("A response is described without its fields and its body")
    func description() {
        let head = UpstreamHead(status: 200, headers: ["X-A": "hidden"])

        #expect("\(UpstreamResponse(head: head, body: Array("hidden".utf8)))" == "status 200")
    }

    @Test(
        "The method of a request is sent",
        arguments: [UpstreamRequest.Method.get, .head, .post, .put, .patch, .delete])
    func methods(_ method: UpstreamRequest.Method) async throws {
        let upstream = try LoopbackUpstream()
        upstream.serve("/a", LoopbackAsset(size: 10))
        var request = upstream.request("/a")
        request.method = method
        request.body = method.hasBody ? [1, 2] : []

        let response = try await pool.exchange(request, bodyLimit: 10)

        #expect(response.status == 200)
        #expect(response.timings.total != nil)
        #expect(response.body.count == (method == .head ? 0 : 10))
        #expect(upstream.requests.map(\.method) == [method.rawValue])
        #expect(upstream.requests.first?.headers["Content-Length"] == (method.hasBody ? "2" : nil))
    }

    @Test("A pool for requests of the service itself connects to every address, that of the upstreams does not")
    func ownRequests() async throws {
        let upstream = try LoopbackUpstream()
        upstream.serve("/a", LoopbackAsset(size: 10))
        let request = UpstreamRequest(url: upstream.url("/a"))
        let own = CurlWorkerPool(
            settings: .ownRequests(userAgent: "larder/own"), clock: ContinuousClock(), logger: Logger(label: "test"))

        let error = await #expect(throws: CacheError.self) { try await pool.exchange(request, bodyLimit: 10) }
        let response = try await own.exchange(request, bodyLimit: 10)

        #expect(error?.code == .upstreamForbidden)
        #expect(response.status == 200)
        #expect(upstream.requests.map { $0.headers["User-Agent"] } == ["larder/own"])
    }

    @Test("The failure of a request for a head has the timings up to it")
    func failureTimings() async throws {
        let upstream = try LoopbackUpstream()
        upstream.serve("/a") { _ in .hangUp }

        let failure = await #expect(throws: ProbeFailure.self) {
            try await pool.head(of: upstream.request("/a"))
        }

        #expect(failure?.timings.connect != nil)
        #expect(failure?.timings.firstByte == nil)
    }
}

extension Result {
    /// The error; nil after a success.
    fileprivate var failure: Failure? {
        if case .failure(let error) = self { error } else { nil }
    }
}
