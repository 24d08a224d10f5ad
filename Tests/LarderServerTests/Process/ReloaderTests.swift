import CacheAPI
import CacheCore
import CacheEngine
import CacheTestKit
import Foundation
import Logging
import Synchronization
import Testing

@testable import LarderServer

/// Reloads of a real configuration file, with a clock of the test.
@Suite(.timeLimit(.minutes(5))) struct ReloaderTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private var file: String { directory.path("config.yaml") }

    private func write(_ text: String, to path: String? = nil) throws {
        try Data(text.utf8).write(to: URL(filePath: path ?? file), options: .atomic)
    }

    /// Runs a reloader with the settings of `file` during `body`.
    private func run(
        flags: [(name: String, text: String)] = [], environment: [String: String] = [:], file: String? = nil,
        refusals: Int = 0, _ body: @Sendable (Bench) async throws -> Void
    ) async throws {
        let input = SettingsInput(flags: flags, environment: environment, file: file ?? self.file)
        let bench = try Bench(input, refusals: refusals)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await bench.reloader.run() }
            try await body(bench)
            group.cancelAll()
        }
    }

    @Test("A changed file is applied after four seconds without a further change")
    func aChangedFileIsAppliedWhenItHasSettled() async throws {
        try write("upstream: {maxTransfers: 7}\n")
        try await run { (bench) async throws in
            try write("upstream: {maxTransfers: 6}\n")
            try await bench.check(4)
            try write("upstream: {maxTransfers: 8}\n")
            let before = bench.reloader.report
            bench.wallClock.advance(by: .seconds(60))
            try await bench.check(4)
            #expect(bench.applied.isEmpty)
            try await bench.check()

            #expect(bench.applied.last?.upstream.maxTransfers == 8)
            #expect(bench.applied.count == 1)
            let after = bench.reloader.report
            #expect(before.loadedAt.map { $0 + .seconds(60) } == after.loadedAt)
            #expect(after.settings.first { $0.key == "upstream.maxTransfers" }?.value == .scalar("8"))
            #expect(after.fault == nil && after.file == file)
        }
    }

    @Test("An unchanged file is not read again")
    func anUnchangedFileIsNotReadAgain() async throws {
        try write("upstream: {maxTransfers: 7}\n")
        try await run { (bench) async throws in
            try await bench.check(9)

            #expect(bench.applied.isEmpty)
        }
    }

    @Test("A replaced directory link is noticed, even if size and time of the file are equal")
    func aReplacedDirectoryLinkIsNoticed() async throws {
        let manager = FileManager.default
        for (name, number) in [("..1", 7), ("..2", 8)] {
            try manager.createDirectory(atPath: directory.path(name), withIntermediateDirectories: false)
            let path = directory.path(name + "/config.yaml")
            try write("upstream: {maxTransfers: \(number)}\n", to: path)
            try manager.setAttributes([.modificationDate: Date(timeIntervalSince1970: 1e9)], ofItemAtPath: path)
        }
        try manager.createSymbolicLink(atPath: directory.path("..data"), withDestinationPath: "..1")
        try manager.createSymbolicLink(atPath: file, withDestinationPath: "..data/config.yaml")
        try await run { (bench) async throws in
            try manager.createSymbolicLink(atPath: directory.path("..tmp"), withDestinationPath: "..2")
            #expect(rename(directory.path("..tmp"), directory.path("..data")) == 0)
            try await bench.settle()

            #expect(bench.applied.map(\.upstream.maxTransfers) == [8])
        }
    }

    @Test("An invalid file changes nothing, is logged once, and is read again until it is valid")
    func anInvalidFileChangesNothing() async throws {
        try write("upstream: {maxTransfers: 7}\n")
        try await run { (bench) async throws in
            try write("upstream: {maxTransfers: 8, pricePerGigabyte: free}\n")
            try await bench.check(8)

            #expect(bench.applied.isEmpty)
            let report = bench.reloader.report
            #expect(report.fault?.key == "upstream.pricePerGigabyte")
            #expect(report.settings.first { $0.key == "upstream.maxTransfers" }?.value == .scalar("7"))
            #expect(bench.reloader.figures?.isSuccessful == false)
            #expect(bench.log.lines(at: .error).count == 1)

            try write("upstream: {maxTransfers: 9}\n")
            try await bench.settle()
            #expect(bench.applied.map(\.upstream.maxTransfers) == [9])
            #expect(bench.reloader.report.fault == nil)
            #expect(bench.reloader.figures?.isSuccessful == true)
        }
    }

    @Test("A file that is missing for a while is a fault, and not a start without settings")
    func aMissingFileIsAFault() async throws {
        try write("upstream: {maxTransfers: 7}\n")
        try await run { (bench) async throws in
            try FileManager.default.removeItem(atPath: file)
            try await bench.settle()
            #expect(bench.reloader.report.fault?.key == file)
            #expect(bench.applied.isEmpty)

            try write("upstream: {maxTransfers: 7}\n")
            try await bench.settle()
            #expect(bench.reloader.report.fault == nil)
        }
    }

    @Test("If one part refuses the settings, no part applies them")
    func aRefusalOfOnePartAppliesNothing() async throws {
        try write("upstream: {maxTransfers: 7}\n")
        try await run(refusals: 1) { (bench) async throws in
            try write("upstream: {maxTransfers: 8}\n")
            let error = await #expect(throws: CacheError.self) { try await bench.reloader.reload() }

            #expect(error?.code == .invalidField("origins.a.tls.caFile"))
            #expect(bench.applied.isEmpty)
            #expect(bench.reloader.report.fault?.key == "origins.a.tls.caFile")
            #expect(try await bench.reloader.reload().changed == ["upstream.maxTransfers"])
            #expect(bench.applied.map(\.upstream.maxTransfers) == [8])
        }
    }

    @Test("Settings that need a restart keep their values, and are listed")
    func fixedSettingsKeepTheirValues() async throws {
        try write("upstream: {maxTransfers: 7, workers: 2}\n")
        try await run { (bench) async throws in
            try write("upstream: {maxTransfers: 8, workers: 3}\nlimits: {drainTimeout: 9s}\n")
            let result = try await bench.reloader.reload()

            #expect(result.changed == ["upstream.maxTransfers"])
            #expect(result.needsRestart == ["upstream.workers", "limits.drainTimeout"])
            #expect(bench.reloader.report.needsRestart == result.needsRestart)
            _ = try await bench.reloader.reload()
            #expect(bench.log.lines(at: .warning).map { $0["settings"] } == ["upstream.workers, limits.drainTimeout"])
            #expect(bench.applied.last?.upstream.workers == 2)
            #expect(bench.applied.last?.limits.drainTimeout == .seconds(30))

            try write("upstream: {maxTransfers: 8, workers: 2}\n")
            #expect(try await bench.reloader.reload().needsRestart == [])
        }
    }

    @Test("A file without its tokens, as while it is written, does not open the service")
    func aReloadDoesNotRemoveTheTokens() async throws {
        try write("upstream: {maxTransfers: 7}\naccess: {token: abcdefgh}\n")
        try await run { (bench) async throws in
            try write("upstream: {maxTransfers: 8}\n")
            let error = await #expect(throws: CacheError.self) { try await bench.reloader.reload() }

            #expect(error?.code == .invalidField("access"))
            #expect(bench.applied.isEmpty)

            try write("upstream: {maxTransfers: 8}\naccess: {allowUnauthenticated: true}\n")
            _ = try await bench.reloader.reload()
            #expect(bench.applied.last?.upstream.maxTransfers == 8)
        }
    }

    @Test("A service for other machines does not lose its token, also if the file has a local address now")
    func aReloadDoesNotExposeTheService() async throws {
        try write("access: {token: abcdefgh}\nlisten: {address: \"0.0.0.0:8080\"}\n")
        try await run { (bench) async throws in
            try write("listen: {address: \"127.0.0.1:8080\"}\n")
            let error = await #expect(throws: CacheError.self) { try await bench.reloader.reload() }

            #expect(error?.code == .invalidField("listen.address"))
            #expect(error?.message.contains("listen.address") == true)
            #expect(bench.applied.isEmpty)
        }
    }

    @Test("A changed token file is applied, and no token is in the report")
    func aChangedTokenFileIsApplied() async throws {
        let token = directory.path("token")
        try write("first-secret", to: token)
        try write("access: {tokenFile: \"\(token)\"}\n")
        try await run { (bench) async throws in
            try write("second-secret", to: token)
            try await bench.check(2)

            #expect(bench.applied.map { $0.access.token?.exposed } == ["second-secret"])
            #expect(!"\(bench.reloader.report)".contains("second-secret"))
            #expect(bench.log.lines(at: .notice).last?["changed"] == "access.token")
        }
    }

    @Test(
        "A changed token file is applied while the configuration file is being written, and while it is unusable",
        arguments: ["upstream: {maxTransfers: 9", "upstream: {maxTransfers: many}\n"])
    func aTokenFileDoesNotWait(text: String) async throws {
        let token = directory.path("token")
        try write("first-secret", to: token)
        let settings = "access: {tokenFile: \"\(token)\"}\n"
        try write(settings + "upstream: {maxTransfers: 7}\n")
        try await run { (bench) async throws in
            try write(settings + text)
            try write("second-secret", to: token)
            try await bench.check(2)
            #expect(bench.applied.map { $0.access.token?.exposed } == ["second-secret"], "during the write")
            try await bench.check(4)
            #expect(bench.reloader.report.fault != nil)
            try write("third-secret", to: token)
            try await bench.check(2)

            #expect(bench.applied.map { $0.access.token?.exposed } == ["second-secret", "third-secret"])
            #expect(bench.applied.last?.upstream.maxTransfers == 7)
            #expect(bench.reloader.report.fault != nil, "the fault of the configuration file stays")
            #expect(bench.log.lines(at: .error).count == 1)
            try write(settings + "upstream: {maxTransfers: 8}\n")
            try await bench.settle()
            #expect(bench.applied.last?.upstream.maxTransfers == 8)
            #expect(bench.applied.last?.access.token?.exposed == "third-secret")
        }
    }

    @Test(
        "A file without a line feed at its end is refused as incomplete, except for one JSON object",
        arguments: [
            ("upstream: {maxTransfers: 8}", false), ("{upstream: {maxTransfers: 8}}", true),
            ("{\"upstream\": {\"maxTransfers\": 8}}", true), ("upstream:\n  maxTransfers: 8\n", true),
        ])
    func anIncompleteFileIsRefused(text: String, isComplete: Bool) async throws {
        try write("upstream: {maxTransfers: 7}\n")
        try await run { (bench) async throws in
            try write(text)
            try await bench.settle()

            #expect(bench.applied.map(\.upstream.maxTransfers) == (isComplete ? [8] : []))
            #expect((bench.reloader.report.fault == nil) == isComplete)
            if !isComplete {
                #expect(bench.reloader.report.fault?.message.contains("is incomplete") ?? false)
                await #expect(throws: CacheError.self) { try await bench.reloader.reload() }
            }
        }
    }

    @Test(
        "A new server of an origin is applied one equal check later, and at once on request",
        arguments: [
            "http://a.example:80/x", "https://a.example/x", "http://a.exampl/x",
            "http://a.example/x\n  b: {baseURL: \"http://b\"}",
        ])
    func aNewServerIsAppliedLater(url: String) async throws {
        let (head, base) = ("origins:\n  a:\n    baseURL: ", "http://a.example/x")
        try write(head + base + "\n")
        try await run { (bench) async throws in
            try write(head + base + "/y\n")
            try await bench.settle()
            #expect(bench.applied.count == 1, "another path is no new server")
            try write(head + url + "\n")
            try await bench.settle()
            #expect(bench.applied.count == 1)
            try await bench.check()
            #expect(bench.applied.count == 2)
            try write(head + "http://other.example/\n")
            _ = try await bench.reloader.reload()
            #expect(bench.applied.last?.origins.first?.settings.baseURL == "http://other.example")
        }
    }

    @Test("Flags and the environment of the start take precedence in each reload")
    func flagsAndEnvironmentTakePrecedence() async throws {
        try write("upstream: {maxTransfers: 7}\ncors: {allowedOrigins: [\"https://a.example\"]}\n")
        let flags = [(name: "upstream.maxTransfers", text: "3")]
        try await run(flags: flags, environment: ["LARDER_LIMITS_BODY_BYTES": "2MiB"]) { (bench) async throws in
            try write("upstream: {maxTransfers: 8}\nlimits: {bodyBytes: 3MiB, urlBytes: 1KiB}\n")
            let result = try await bench.reloader.reload()

            #expect(result.changed == ["cors.allowedOrigins", "limits.urlBytes"])
            let settings = bench.reloader.report.settings
            let sources = Dictionary(uniqueKeysWithValues: settings.map { ($0.key, $0.source) })
            #expect(sources["upstream.maxTransfers"] == "flag")
            #expect(sources["limits.bodyBytes"] == "environment")
            #expect(sources["limits.urlBytes"] == "file")
            #expect(sources["cors.allowedOrigins"] == "default")
        }
    }
}

/// A reloader with one part that records the applied settings, and one that can refuse them.
private final class Bench: Sendable {
    /// Records the settings that are put in force.
    private struct Recorder: SettingsApplier {
        let record: @Sendable (LarderSettings) -> Void

        func prepare(
            from old: LarderSettings, to new: LarderSettings
        ) async throws(CacheError) -> @Sendable () -> Void {
            { [record] in record(new) }
        }
    }

    /// Refuses the first settings.
    private final class Refuser: SettingsApplier {
        private let left: Mutex<Int>

        init(_ count: Int) { left = Mutex(count) }

        func prepare(
            from old: LarderSettings, to new: LarderSettings
        ) async throws(CacheError) -> @Sendable () -> Void {
            let refuses = left.withLock { left in
                defer { left -= 1 }
                return left > 0
            }
            if refuses { throw CacheError(.invalidField("origins.a.tls.caFile"), "The file cannot be read.") }
            return {}
        }
    }

    let reloader: Reloader
    let clock = ManualClock()
    let wallClock = ManualWallClock()
    let log = LogRecord(level: .trace)
    private let record: Records

    private final class Records: Sendable {
        let settings = Mutex<[LarderSettings]>([])
    }

    init(_ input: SettingsInput, refusals: Int) throws {
        let record = Records()
        self.record = record
        reloader = Reloader(
            input, try input.read(),
            appliers: [
                Recorder { settings in record.settings.withLock { $0.append(settings) } }, Refuser(refusals),
            ], clock: clock, wallClock: wallClock, logger: log.logger)
    }

    /// The settings that were put in force.
    var applied: [LarderSettings] { record.settings.withLock { $0 } }

    /// Lets the reloader check the files, and waits until it sleeps again.
    func check(_ count: Int = 1) async throws {
        let clock = clock
        for _ in 0..<count {
            #expect(try await eventually { clock.sleeps.count == 1 })
            clock.advance(by: WatchedFile.checkInterval)
            #expect(try await eventually { clock.sleeps.count == 1 })
        }
    }

    /// The checks after which a changed configuration file is read: one that finds the change, and four seconds.
    func settle() async throws { try await check(5) }
}
