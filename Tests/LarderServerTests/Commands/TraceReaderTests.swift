import CacheCore
import CacheTestKit
import Foundation
import Testing

@testable import LarderServer

@Suite struct TraceReaderTests {
    private let directory = try? TemporaryDirectory()

    private func reads(_ text: String) throws -> [TraceReader.Read] {
        let path = try #require(directory).path + "/trace.csv"
        try Data(text.utf8).write(to: URL(filePath: path))
        var reader = try TraceReader(path: path)
        var reads: [TraceReader.Read] = []
        while let read = try reader.next() { reads.append(read) }
        return reads
    }

    @Test("Runs and whole objects are parsed")
    func runsAndWholeObjectsAreRead() throws {
        let runs = try reads("time,asset,offset,bytes\n0.5,a,100,20\r\n\n7, a ,0,5\n8,b,0,1")
        #expect(runs.map(\.at.milliseconds) == [500, 7000, 8000])
        #expect(runs.map(\.offset) == [100, 0, 0] && runs.map(\.bytes) == [20, 5, 1])
        #expect(runs[0].asset == runs[1].asset && runs[1].asset != runs[2].asset)
        let objects = try reads("1,x,10\n2,y,20\n")
        #expect(objects.map(\.offset) == [nil, nil] && objects.map(\.bytes) == [10, 20])
    }

    @Test(
        "A malformed line is reported",
        arguments: [
            ("1,a,2,3\n1,a,2\n", "line 2: The columns must be time,key"),
            ("1,a\n", "line 1: The columns must be time,key"), ("1,a,-2\n", "line 1: \"-2\""),
            ("1,a,1\nx,a,1\n", "line 2: \"x\" is not a time"), ("1,a,0,9223372036854775807\n", "line 1: \"922"),
            ("2,a,1\n1,a,1\n", "line 2: The time is earlier than"),
            ("nan,a,1\n", "line 1: \"nan\""), (String(repeating: "1", count: 3 << 20), "line 1: The line is too long"),
        ])
    func whatIsNoReadIsNamed(text: String, reason: String) throws {
        let fault = #expect(throws: TraceReader.Fault.self) { try reads(text) }
        #expect(fault.map { "\($0)".hasPrefix(reason) } ?? false, "\(fault.map { "\($0)" } ?? "")")
    }

    @Test("A trace is simulated under a policy with a capacity")
    func aTraceIsPlayedAgainstAPolicyOfACapacity() throws {
        #expect(Capacity(argument: "2GiB")?.bytes == 2 << 30 && Capacity(argument: "0") == nil)
        var simulation = TraceSimulation(.lru, 100)
        for read in try reads("1,a,60\n2,b,60\n3,b,60\n4,a,60\n") { simulation.play(read) }
        #expect(Array(simulation.row[2...4]) == ["4", "25.00 %", "25.00 %"] && simulation.row.last == "180")
    }
}
