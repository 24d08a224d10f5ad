import CacheTestKit
import Foundation
import TestChance
import Testing

@testable import LarderServer

/// Randomly altered files: each is parsed, or rejected with a reason.
@Suite struct GarbledFilesTests {
    private static let configuration = [
        "listen:\n  address: 127.0.0.1:8080\npolicy: {capacity: 20GiB, algorithm: s3fifo}\n",
        "origins:\n  media:\n    baseURL: https://media.example/a\n    headers: [\"X-A: 1\"]\n    freshness: 1h\n",
        "{\"quotas\": {\"a\": {\"tag\": \"b\", \"minBytes\": \"1GiB\"}}, \"log\": {\"level\": \"info\"}}",
        "a: &x [1, 2]\nb: *x\nc: !!binary aGk=\n",
    ]
    private static let traces = ["1,a,100\n2,b,5\n", "0.5,a,0,100\n1e3,\"b\",7,9\n", "time,key,bytes\n1,a,1\n"]

    @Test("Settings are parsed or rejected")
    func settingsAreReadOrRefused() {
        let (_, seed) = SeededRandom.announced()
        for number in UInt64(0)..<3_000 {
            let text = String(
                decoding: Mutation.input(number, seed: seed, from: Self.configuration.map { Array($0.utf8) }).prefix(
                    4096), as: UTF8.self)
            do {
                _ = try LarderSettings(file: ConfigurationFile(text: text, name: "garbled.yaml"))
            } catch {
                #expect(!"\(error)".isEmpty)
            }
        }
    }

    @Test("Traces are parsed or rejected")
    func tracesAreReadOrRefused() throws {
        let (_, seed) = SeededRandom.announced()
        let directory = try TemporaryDirectory()
        for number in UInt64(0)..<2_000 {
            let bytes = Mutation.input(number, seed: seed, from: Self.traces.map { Array($0.utf8) })
            let path = directory.path("trace.csv")
            try Data(bytes).write(to: URL(fileURLWithPath: path))
            do {
                var reader = try TraceReader(path: path)
                while let read = try reader.next() { #expect(read.bytes >= 0 && read.offset ?? 0 >= 0) }
            } catch let fault as TraceReader.Fault {
                #expect(fault.description.hasPrefix("line "))
            }
        }
    }
}
