@testable import CacheEngine
import CacheCore
import Testing

@Suite("Documents of the jobs of a fleet")
struct FleetJobDocumentTests {
    static func items(_ count: Int, pathBytes: Int = 20) -> [JobItemRecord] {
        (0..<count).map { index in
            let path = "\(index)/" + String(repeating: "x", count: pathBytes)
            return JobItemRecord(
                index: index, reference: .mounted(origin: "media", path: path, key: nil), ranges: ["bytes=0-9"],
                tags: ["tag"], isPinned: index == 1)
        }
    }

    @Test("Ten thousand items are divided into pieces that fit into a request, and read back")
    func itemsAreDivided() throws {
        let items = Self.items(10_000, pathBytes: 300)

        let chunks = try #require(try FleetJobChunks.chunks(of: items))

        #expect(chunks.count > 1)
        #expect(chunks.allSatisfy { $0.count <= FleetJobChunks.maxBytes - 64 })
        #expect(try FleetJobChunks.items(of: chunks) == items)
    }

    @Test("An item that is larger than a piece stays at its node")
    func largeItemsAreRefused() throws {
        #expect(try FleetJobChunks.chunks(of: Self.items(1, pathBytes: FleetJobChunks.maxBytes)) == nil)
    }

    @Test("A piece with another form is an error")
    func invalidPiecesAreErrors() {
        #expect(throws: CacheError.self) { try FleetJobChunks.items(of: [Array("[{}]".utf8)]) }
        #expect(throws: CacheError.self) { try FleetJobChunks.items(of: [Array("{".utf8)]) }
    }

    @Test("Results restore the progress of their items")
    func resultsRestoreProgress() throws {
        var items = Self.items(FleetJobResults.count + 2)
        items[0].state = .succeeded
        (items[0].bytesTotal, items[0].bytesFromUpstream, items[0].attempts) = (10, 10, 1)
        items[FleetJobResults.count + 1].state = .failed
        items[FleetJobResults.count + 1].error = RecordedError(code: "notFound", message: "There is none.")

        var restored = Self.items(items.count)
        for number in 0...1 {
            let results = FleetJobResults(number, of: items, ordered: items.count, round: 0)
            let read = try JSONParser.parse(results.jsonBytes).decode(FleetJobResults.self, isStrict: false)
            read.restore(number, to: &restored, round: 0)
        }

        #expect(restored == items)
    }

    @Test("Of an earlier round only successes count")
    func earlierRoundsCountSuccesses() {
        var items = Self.items(3)
        (items[0].state, items[1].state) = (.succeeded, .failed)
        items[1].error = RecordedError(code: "notFound", message: "There is none.")

        var restored = Self.items(3)
        FleetJobResults(0, of: items, ordered: 3, round: 0).restore(0, to: &restored, round: 1)

        #expect(restored.map(\.state) == [.succeeded, .queued, .queued])
        #expect(restored[1].error == nil)
    }

    @Test("A playlist has succeeded when all its files have", arguments: [JobState.queued, .failed, .succeeded])
    func playlistsWaitForTheirFiles(state: JobState) {
        var items = Self.items(4)
        items[0].state = .succeeded
        (items[1].parent, items[2].parent, items[3].parent) = (nil, 0, 2)
        (items[2].state, items[3].state) = (.succeeded, state)

        var restored = Array(items.prefix(2))
        restored[0].state = .queued
        FleetJobResults(0, of: items, ordered: 2, round: 0).restore(0, to: &restored, round: 0)

        #expect(restored.count == 2)
        #expect(restored[0].state == (state == .queued ? .running : state))
    }

    @Test("The head has the limits and the sums of its job")
    func headsRestoreJobs() throws {
        let owner = TokenOwner(id: "token", limits: ContentLimits(origins: ["media"], prefixes: ["/o/media/a/"]))
        let record = JobRecord(
            id: "job", state: .running, label: "label", queue: "queue", supersedes: true, priority: .high, owner: owner,
            maxBytesPerSecond: 1000, timeout: .seconds(60), deadlineAt: Timestamp(milliseconds: 5000),
            createdAt: Timestamp(milliseconds: 1000), startedAt: Timestamp(milliseconds: 2000))
        var tally = JobTally()
        for item in Self.items(3) { tally.add(item) }
        let job = JobSnapshot(record: record, tally: tally, version: 7)

        let head = FleetJobHead(job, items: 3, chunks: [[1, 2]], lease: 9)
        var read = try JSONParser.parse(head.jsonBytes).decode(FleetJobHead.self, isStrict: false)

        #expect(read == head)
        #expect(read.record("job") == record)
        #expect(FleetJobHead.Sums(read.sums.tally) == FleetJobHead.Sums(tally))

        read.end(as: .cancelled, because: nil, at: Timestamp(milliseconds: 9000))
        #expect(read.jobState == .cancelled && read.sums.tally[.cancelled] == 3 && read.sums.tally[.queued] == 0)
    }

    @Test("The terms of a head are those of its last change")
    func headsKeepChangedTerms() throws {
        var record = JobRecord(id: "job", state: .running, createdAt: Timestamp(milliseconds: 1000))
        var head = FleetJobHead(
            JobSnapshot(record: record, tally: JobTally(), version: 1), items: 1, chunks: [], lease: 1)
        head.terms = JobTerms(priority: .low, maxBytesPerSecond: 9, isPaused: true, revision: 2)

        head.apply(record)
        #expect(
            head.jobState == .paused && head.terms.priority == .low, "progress at an earlier revision changes nothing")

        record.terms = head.terms
        head.apply(record)
        let read = try JSONParser.parse(head.jsonBytes).decode(FleetJobHead.self, isStrict: false)
        #expect(read.state == "queued" && read.record("job") == record)

        record.state = .cancelled
        head.apply(record)
        #expect(head.jobState == .cancelled)
    }

    @Test("The place in a list of jobs is read back from its cursor")
    func placesAreCursors() throws {
        var place = try FleetJobPlace(nil)
        place.last = FleetJobPlace.Last(createdAt: Timestamp(milliseconds: 1234), id: "job")
        (place.ownCursor, place.hasOwn) = ("cursor_1", false)

        #expect(try FleetJobPlace(place.text) == place)
        #expect(throws: CacheError.self) { try FleetJobPlace("x") }
    }
}
