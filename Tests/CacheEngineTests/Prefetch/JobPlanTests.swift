import CacheCore
import CacheEngine
import CacheStore
import CacheTestKit
import Testing

/// Dry runs of jobs.
@Suite struct JobPlanTests {
    private let upstream: LoopbackUpstream
    private let directory: TemporaryDirectory

    init() throws {
        upstream = try LoopbackUpstream()
        directory = try TemporaryDirectory()
        upstream.serve("/a.mp4", LoopbackAsset(size: 1000))
        serve("/files.json", #"[{"path": "a.mp4"}, {"path": "b.mp4", "size": 500}, {"path": "c.txt", "size": 7}]"#)
    }

    private func serve(_ path: String, _ text: String) {
        upstream.serve(path, LoopbackAsset(content: Array(text.utf8), contentType: "application/json"))
    }

    private func cache(_ limits: PrefetchSchedule.Limits? = nil) throws -> TestCache {
        try TestCache(
            directory: directory.path("data"), origins: [TestCache.origin(upstream)],
            jobLimits: limits ?? PrefetchSchedule.Limits())
    }

    /// A request for the files of documents, and for whole files.
    private func order(
        _ lists: [String], files: [String] = [], _ change: (inout ListSelection) -> Void = { _ in }
    ) -> CreateJobRequest {
        var order = CreateJobRequest(items: (lists + files).map { (.media($0), []) })
        var selection = ListSelection()
        change(&selection)
        for index in lists.indices { order.items[index].list = selection }
        return order
    }

    @Test("A plan has the files of lists and items with their lengths, and creates no job")
    func aPlanHasTheFiles() async throws {
        try await cache().run { cache in
            let job = try await cache.jobs.submit(order([], files: ["a.mp4"]))
            _ = try await cache.finished(job)
            var order = order(["files.json"], files: ["a.mp4", "new.mp4"]) { $0.include = ["*.mp4"] }
            order.items[1].ranges = ["bytes=0-9"]

            let plan = try await cache.jobs.plan(order)

            // The catalog knows the length of a.mp4, the listing that of b.mp4, and nothing that of new.mp4.
            #expect(plan.files == 4 && plan.bytes == 1000 + 500 + 10 && plan.filesOfUnknownLength == 1)
            #expect(plan.entries.map(\.reference) == ["a.mp4", "b.mp4", "a.mp4", "new.mp4"].map { .media($0) })
            #expect(plan.entries.map(\.bytes) == [1000, 500, 10, nil])
            #expect(plan.entries.map(\.parent) == [0, 0, nil, nil])
            #expect(try await cache.jobs.page().items.count == 1)
        }
        #expect(upstream.requests(for: "/new.mp4").isEmpty)
    }

    @Test("A plan shows the first files and counts all")
    func aPlanShowsTheFirstFiles() async throws {
        serve("/many.json", "[" + (0..<50).map { #""\#($0).ts""# }.joined(separator: ",") + "]")
        try await cache().run { cache in
            let plan = try await cache.jobs.plan(order(["many.json"]))

            #expect(plan.files == 50 && plan.filesOfUnknownLength == 50 && plan.entries.count == JobPlan.mostEntries)
        }
    }

    @Test("A file outside the limits of the token is skipped")
    func aFileOutsideTheLimitsIsSkipped() async throws {
        serve("/in/files.json", #"["/in/x.ts", "/out/y.ts"]"#)
        try await cache().run { cache in
            var order = order(["in/files.json"])
            order.owner = TokenOwner(id: "t", limits: ContentLimits(prefixes: ["/o/media/in/"]))

            let plan = try await cache.jobs.plan(order)

            #expect(plan.entries.map(\.reference) == [.media("in/x.ts")] && plan.skippedEntries == 1)
        }
    }

    @Test("A plan fails as the job: with an unknown origin, a missing list, or too many files")
    func aPlanFailsAsTheJob() async throws {
        try await cache(PrefetchSchedule.Limits(jobItems: 3)).run { cache in
            func code(_ order: CreateJobRequest) async -> String? {
                do throws(CacheError) {
                    _ = try await cache.jobs.plan(order)
                    return nil
                } catch { return error.code.name }
            }
            var unknown = order([], files: ["a"])
            unknown.items[0].reference = .mounted(origin: "nobody", path: "a", key: nil)
            #expect(await code(unknown) == "invalidField")
            #expect(await code(order(["nothing.json"])) == "upstreamRefused")
            #expect(await code(order(["files.json"])) == "jobTooLarge")
            #expect(await code(order(["files.json"]) { $0.include = ["*.txt"] }) == nil)
            #expect(await code(order(["files.json"], files: ["a.mp4"]) { $0.limit = 1 }) == "jobTooLarge")
        }
    }
}
