import ArgumentParser
import CacheCore
import CacheTestKit
import Foundation
import Testing

@testable import LarderServer

@Suite struct ClientArgumentTests {
    private func parsed<Command: ParsableCommand>(_ line: String, as type: Command.Type = Command.self) throws
        -> Command
    {
        try #require(LarderCommand.parseAsRoot(line.split(separator: " ").map(String.init)) as? Command)
    }

    @Test("A prefetch of URLs is a job request")
    func aPrefetchIsAJobRequest() throws {
        let command: PrefetchCommand = try parsed(
            "prefetch http://a/x https://b/y --play 10s --start 1m --priority high --label tonight")

        #expect(
            command.body.text
                == #"{"items":[{"url":"http://a/x","play":{"startSeconds":60,"seconds":10}},"#
                + #"{"url":"https://b/y","play":{"startSeconds":60,"seconds":10}}],"priority":"high","label":"tonight"}"#
        )
    }

    @Test("A prefetch of paths and ranges is a job request")
    func aPrefetchOfPathsIsAJobRequest() throws {
        let command: PrefetchCommand = try parsed(
            "prefetch --origin media --path a.mp4 --path b.mp4 --range bytes=0-9 --range bytes=-5")

        #expect(
            command.body.text
                == #"{"items":[{"origin":"media","path":"a.mp4","ranges":["bytes=0-9","bytes=-5"]},"#
                + #"{"origin":"media","path":"b.mp4","ranges":["bytes=0-9","bytes=-5"]}],"priority":"normal"}"#)
    }

    @Test("A dry run of folders is a job request")
    func aDryRunOfFoldersIsAJobRequest() throws {
        let command: PrefetchCommand = try parsed(
            "prefetch --origin media --path films/ --list --recursive --include **/*.mp4 --dry-run")

        #expect(
            command.body.text
                == #"{"items":[{"origin":"media","path":"films/","list":{"recursive":true,"include":["**/*.mp4"]}}],"#
                + #""priority":"normal","dryRun":true}"#)
    }

    @Test("The lines of a file are items of a job, and errors name the lines of the file")
    func lines() {
        let shared: [JSON.Member] = [.init("ranges", ["bytes=0-9"])]
        let job: [JSON.Member] = [.init("priority", "low")]
        let text = JobLinesText("a.mp4\r\n\n {\"url\":\"http://a/x\"}\n", origin: "media", shared: shared, job: job)
        #expect(
            text.body == #"{"job":{"priority":"low"}}"# + "\n"
                + #"{"origin":"media","path":"a.mp4","ranges":["bytes=0-9"]}"# + "\n\n" + #"{"url":"http://a/x"}"#
                + "\n"
        )
        #expect(text.count == 2)
        #expect(
            JobLinesText("http://a/x", origin: nil, shared: [], job: []).body
                == "{\"job\":{}}\n{\"url\":\"http://a/x\"}")
        func renumbered(_ message: String) -> String {
            JobLinesText.renumbered(ClientError(.foreign, message)).message
        }
        #expect(renumbered("Line 13: no.") == "Line 12: no.")
        #expect(renumbered("Line 1: no.") == "Line 1: no.")
        #expect(renumbered("Another error.") == "Another error.")
    }

    @Test("A purge is planned before it is carried out")
    func aPurgeIsPlanned() throws {
        let command: PurgeCommand = try parsed(
            "purge http://a/x --origin media --prefix /o/media/f --tag old --soft --yes")

        #expect(
            command.body.text
                == #"{"origin":"media","prefix":"/o/media/f","tag":"old","urls":["http://a/x"],"soft":true,"dryRun":true}"#
        )
    }

    @Test("The list of jobs is the default of its command")
    func theListOfJobsIsTheDefault() throws {
        let all: JobsListCommand = try parsed("jobs --state failed --label x")
        let one: JobsListCommand = try parsed("jobs 80173b44978bc8aea25dbfba0120ced2 --json")
        let changed: JobsSetCommand = try parsed(
            "jobs set 80173b44978bc8aea25dbfba0120ced2 --priority high --rate 4MiB --deadline none")
        #expect(changed.body == ["priority": "high", "maxBytesPerSecond": 4_194_304, "deadlineAt": .null])
        let cancelled: JobsCancelCommand = try parsed("jobs cancel 80173b44978bc8aea25dbfba0120ced2")

        #expect(all.state == .failed && all.label == "x" && all.job == nil)
        #expect(one.job == "80173b44978bc8aea25dbfba0120ced2" && one.service.json)
        #expect(cancelled.job == one.job)
    }

    @Test("The states and sort keys are those of the API")
    func statesAndSortKeysAreThoseOfTheAPI() throws {
        let command: AssetsCommand = try parsed("assets --state partial --sort cachedBytes --limit 5 --ascending")

        #expect(
            command.state == .partial && command.sort == .cachedBytes && command.options.limit == 5 && command.ascending
        )
    }

    @Test(
        "Contradictory and missing arguments are usage errors",
        arguments: [
            ("prefetch", "Name the assets"), ("prefetch --origin media", "require each other"),
            ("prefetch http://a/x --path y", "require each other"),
            ("prefetch http://a/x --from-file y", "replaces"), ("prefetch http://a/x --live --play 5s", "excludes"),
            ("prefetch http://a/x --start 5s", "requires --play"),
            ("prefetch http://a/x --play 5s --range bytes=0-1", "exclude each other"),
            ("prefetch http://a/x --recursive", "require --list"),
            ("prefetch http://a/x --list --range bytes=0-1", "exclude each other"),
            ("prefetch http://a/x --dry-run --wait", "exclude each other"),
            ("prefetch http://a/x --play 5", "--play"), ("prefetch http://a/x --play 0s", "longer than 0 s"),
            ("purge", "Select the assets"), ("purge --tag x --yes --dry-run", "exclude each other"),
            ("assets --limit 0", "at least 1"), ("assets --sort size", "--sort"), ("jobs --items", "requires"),
            ("jobs abc --state failed", "leave them out"), ("prefetch http://a/x --priority urgent", "--priority"),
            ("stats --token x", "--token"),
        ])
    func wrongArgumentsAreUsageErrors(_ line: String, _ part: String) throws {
        let error = #expect(throws: (any Error).self) { try parsed(line, as: AssetsCommand.self) }
        let thrown = try #require(error)

        #expect(LarderCommand.fullMessage(for: thrown).contains(part), "\(LarderCommand.fullMessage(for: thrown))")
        #expect(LarderCommand.exitCode(for: thrown) == .validationFailure)
    }

    @Test(
        "The URL of the service is normalised",
        arguments: [
            ("http://127.0.0.1:8080/", "http://127.0.0.1:8080"),
            ("https://cache.example/larder//", "https://cache.example/larder"),
            ("http://[::1]:81", "http://[::1]:81"), ("unix:/run/larder.sock", "unix:/run/larder.sock"),
        ])
    func theURLIsNormalised(_ text: String, _ url: String) throws {
        #expect(try ServiceAddress(text).description == url)
    }

    @Test(
        "Other URLs of the service are rejected",
        arguments: [
            ("ftp://a", "is not a URL"), ("127.0.0.1:8080", "is not a URL"), ("", "is not a URL"),
            ("http://user:secret@a", "LARDER_TOKEN"), ("http://a/?x=1", "query"),
            ("unix:larder.sock", "absolute path"),
        ])
    func otherURLsAreRejected(_ text: String, _ part: String) throws {
        let fault = #expect(throws: ServiceAddress.Fault.self) { try ServiceAddress(text) }

        #expect(fault?.description.contains(part) ?? false)
    }

    @Test("The token comes from one variable or one file")
    func theTokenComesFromTheEnvironment() throws {
        let directory = try TemporaryDirectory()
        let file = directory.path("token")
        try "secret\n".write(toFile: file, atomically: true, encoding: .utf8)

        #expect(try ClientEnvironment([:]).token() == nil)
        #expect(try ClientEnvironment(["LARDER_TOKEN": "abc", "LARDER_TOKEN_FILE": ""]).token()?.exposed == "abc")
        #expect(try ClientEnvironment(["LARDER_TOKEN_FILE": file]).token()?.exposed == "secret")
        for variables in [
            ["LARDER_TOKEN": "a", "LARDER_TOKEN_FILE": file], ["LARDER_TOKEN_FILE": "/nowhere"],
            ["LARDER_TOKEN": "a\r\nX: y"],
        ] {
            #expect(throws: ClientEnvironment.Fault.self) { try ClientEnvironment(variables).token() }
        }
    }

    @Test("Queries and path segments are percent-encoded")
    func queriesAreEncoded() {
        let request = ServiceRequest(.get, "/v1/assets", query: [("prefix", "/o/a b&c"), ("tag", nil), ("state", "é")])

        #expect(request.target == "/v1/assets?prefix=%2Fo%2Fa%20b%26c&state=%C3%A9")
        #expect(PercentEncoding.encoded("../x\n") == "..%2Fx%0A")
    }
}
