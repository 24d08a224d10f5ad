import CacheTestKit
import Foundation
import FoundationNetworking
import Testing

/// Start of the program, and errors that prevent it.
@Suite(.timeLimit(.minutes(5))) struct StartTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func serve(_ arguments: [String], after setUp: String = ":") throws -> (status: Int32, errors: String) {
        let base = ["serve", "--listen", "127.0.0.1:0", "--data-directory", directory.path("store")]
        let run = try LarderProgram.run(base + arguments, after: setUp)
        return (run.status, run.errors)
    }

    @Test(
        "An invalid setting is named",
        arguments: [
            (
                ["--set", "listen.tls.certificateFile=/nowhere/c.pem", "--set", "listen.tls.keyFile=/nowhere/k.pem"],
                "listen.tls.certificateFile"
            ),
            (["--data-directory", "/proc/larder"], "dataDirectory"),
            (
                ["--set", "origins.a.baseURL=https://a.example", "--set", "origins.a.tls.caFile=/nowhere/ca.pem"],
                "origins.a.tls.caFile"
            ),
            (["--set", "policy.capacity=lots"], "policy.capacity"),
        ])
    func aWrongSettingIsNamed(arguments: [String], key: String) throws {
        let run = try serve(arguments)
        #expect(run.status == 78)
        #expect(run.errors.contains("larder: \(key): "), "\(run.errors)")
    }

    @Test("An address in use is named")
    func anAddressInUseIsNamed() throws {
        let occupant = try LoopbackUpstream()
        defer { occupant.stop() }
        let run = try serve(["--listen", "127.0.0.1:\(occupant.port)"])
        #expect(run.status == 78)
        #expect(run.errors.contains("larder: listen.address: cannot listen on 127.0.0.1:\(occupant.port)"))
    }

    @Test("A store in use is named")
    func aStoreThatIsInUseIsNamed() async throws {
        let first = try await Running(directory.path("store"))
        let run = try serve([])
        first.stop()
        #expect(run.status == 78)
        #expect(run.errors.contains("larder: dataDirectory: "))
    }

    @Test("An open file limit below the minimum is rejected", arguments: [16, 64, 127])
    func tooFewOpenFilesAreRefused(_ limit: Int) throws {
        let run = try serve([], after: "ulimit -n \(limit)")
        #expect(run.status == 78)
        #expect(run.errors.contains("the limit is \(limit), and at least 128 are needed"), "\(run.errors)")
    }

    @Test("Many clients are served with few open files")
    func withFewOpenFilesManyClientsAreServed() async throws {
        let upstream = try LoopbackUpstream()
        defer { upstream.stop() }
        for index in 0..<64 { upstream.serve("/\(index)", LoopbackAsset(size: 100_000)) }
        let larder = try await Running(
            directory.path("store"), after: "ulimit -n 128",
            ["--set", "origins.media.baseURL=\(upstream.url(""))", "--set", "origins.media.allowPrivateAddresses=true"])
        defer { larder.stop() }
        let bytes = LoopbackAsset(size: 100_000).bytes(0..<100_000)
        let outcomes = await withTaskGroup(of: Int.self) { group in
            for index in 0..<64 {
                group.addTask {
                    guard let (status, body) = try? await larder.get("/o/media/\(index)") else { return 0 }
                    return status == 200 && body != bytes ? -1 : status
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        // A connection above the limit gets 503 or is closed.
        #expect(outcomes.allSatisfy { [0, 200, 503].contains($0) })
        #expect(outcomes.contains(200))
        let isServed = try await eventually { (try? await larder.get("/o/media/1").status) == 200 }
        #expect(isServed)
    }

    @Test("SIGHUP is ignored")
    func aHangUpSignalIsIgnored() async throws {
        let larder = try await Running(directory.path("store"))
        defer { larder.stop() }
        for _ in 0..<3 { kill(larder.process.processIdentifier, SIGHUP) }
        #expect(try await larder.get("/health/live").status == 200)
        #expect(larder.process.isRunning)
    }

    @Test("The version is printed in both forms")
    func theVersionIsPrintedInBothForms() throws {
        #expect(try LarderProgram.run(["version"]).output == "0.1.0\n")
        #expect(try LarderProgram.run(["version", "--json"]).output == #"{"name":"larder","version":"0.1.0"}"# + "\n")
        #expect(try LarderProgram.run(["version", "--output", "json"]).output.hasPrefix("{"))
    }

    @Test(
        "Commands list only their own flags",
        arguments: [
            ("verify", "--listen"), ("export", "--capacity"), ("healthcheck", "--data-directory"),
            ("simulate", "--config"),
            ("version", "--config"),
        ])
    func commandsListOnlyTheirOwnFlags(_ command: String, _ flag: String) throws {
        let help = try LarderProgram.run([command, "--help"]).output
        #expect(help.contains("USAGE: larder \(command)") && !help.contains(flag))
    }
}

/// A running service on a free port.
private struct Running {
    private static let session: URLSession = {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpMaximumConnectionsPerHost = 64
        return URLSession(configuration: configuration)
    }()

    let process = Process()
    let port: Int

    init(_ directory: String, after setUp: String = ":", _ arguments: [String] = []) async throws {
        let place = try LoopbackUpstream()  // finds a free port
        place.stop()
        port = place.port
        process.executableURL = URL(filePath: "/bin/sh")
        process.arguments =
            ["-c", setUp + "; exec \"$@\"", "sh", LarderProgram.url.path, "serve", "--listen", "127.0.0.1:\(port)"]
            + ["--data-directory", directory, "--set", "limits.shutdownDelay=1ms"] + arguments
        process.standardError = FileHandle.nullDevice
        try process.run()
        let running = self
        let isReady = try await eventually { (try? await running.get("/health/ready").status) == 200 }
        try #require(isReady)
    }

    func get(_ path: String) async throws -> (status: Int, body: [UInt8]) {
        var request = URLRequest(url: try #require(URL(string: "http://127.0.0.1:\(port)\(path)")))
        request.cachePolicy = .reloadIgnoringLocalCacheData
        let (body, response) = try await Self.session.data(for: request)
        return ((response as? HTTPURLResponse)?.statusCode ?? 0, Array(body))
    }

    func stop() {
        process.terminate()
        process.waitUntilExit()
    }
}
