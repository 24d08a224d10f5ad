import ArgumentParser
import CacheCore
import CacheTestKit
import Foundation
import Testing

@testable import LarderServer

/// Contexts, and the service that a command calls.
@Suite struct ContextTests {
    /// A configuration with the contexts `live` and `lab`, and possibly a selected one.
    private func environment(
        selected: String? = nil, _ variables: [String: String] = [:], in directory: TemporaryDirectory
    ) throws -> ClientEnvironment {
        let home = ["XDG_CONFIG_HOME": directory.path("configuration")]
        var contexts = ServiceContexts()
        contexts["live"] = .init(name: "live", url: "https://live.test")
        contexts["lab"] = .init(name: "lab", url: "http://lab.test")
        contexts.current = selected
        try contexts.save(ClientEnvironment(home))
        return ClientEnvironment(home.merging(variables) { $1 })
    }

    @Test(
        "Options name the service before variables, and variables before the selected context",
        arguments: [
            ([], [:], nil, "http://127.0.0.1:8080"), ([], [:], "lab", "http://lab.test"),
            ([], ["LARDER_CONTEXT": "live"], "lab", "https://live.test"),
            ([], ["LARDER_URL": "http://a.test"], "lab", "http://a.test"),
            (["-c", "live"], ["LARDER_URL": "http://a.test"], "lab", "https://live.test"),
            (["--url", "http://b.test"], ["LARDER_CONTEXT": "live"], "lab", "http://b.test"),
        ] as [([String], [String: String], String?, String)])
    func theServiceIsNamed(options: [String], variables: [String: String], selected: String?, url: String) throws {
        let directory = try TemporaryDirectory()
        let environment = try environment(selected: selected, variables, in: directory)

        #expect(try ServiceOptions.parse(options).client(environment).address.description == url)
    }

    @Test(
        "A contradiction, an unknown context and a file for others are errors",
        arguments: [
            ([], ["LARDER_CONTEXT": "live", "LARDER_URL": "http://a.test"], 0o600, "remove one of them"),
            (["-c", "lvie"], [:], 0o600, "Did you mean live?"),
            (["-c", "unrelated"], [:], 0o600, "context set unrelated"),
            ([], [:], 0o640, "chmod 600"),
        ] as [([String], [String: String], Int, String)])
    func errors(options: [String], variables: [String: String], mode: Int, part: String) throws {
        let directory = try TemporaryDirectory()
        let environment = try environment(variables, in: directory)
        let file = try #require(environment.contextsFile)
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: file)

        let error = #expect(throws: ValidationError.self) { try ServiceOptions.parse(options).client(environment) }
        #expect(error?.message.contains(part) ?? false, "\(error?.message ?? "")")
    }

    @Test("A file of contexts is private, and a document of a context has no token")
    func privacy() throws {
        let directory = try TemporaryDirectory()
        let environment = try environment(in: directory)
        var contexts = try ServiceContexts(of: environment)
        var context = try contexts.named("live")
        context.keep(MaskedSecret("s3cret"))
        contexts["live"] = context
        try contexts.save(environment)

        let file = try #require(environment.contextsFile)
        let mode = try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int
        let read = try ServiceContexts(of: environment).named("live")
        #expect(mode == 0o600)
        #expect(try read.secret()?.exposed == "s3cret")
        #expect(!read.document(isCurrent: true).text.contains("s3cret"))
    }

    @Test("The file is below the directory of the configuration")
    func theFile() {
        #expect(ClientEnvironment(["HOME": "/h"]).contextsFile == "/h/.config/larder/contexts.json")
        #expect(
            ClientEnvironment(["HOME": "/h", "XDG_CONFIG_HOME": "/x"]).contextsFile == "/x/larder/contexts.json")
        #expect(
            ClientEnvironment(["HOME": "/h", "XDG_CONFIG_HOME": "x"]).contextsFile
                == "/h/.config/larder/contexts.json")
        #expect(ClientEnvironment([:]).contextsFile == nil)
    }

    @Test(
        "The most similar command is suggested",
        arguments: [
            ("jbos", "jobs"), ("jobs pasue x", "pause"), ("token lsit", "list"), ("jobs pause", nil), ("--jbos", nil),
            ("unrelated", nil), ("stats extra", nil),
        ])
    func suggestions(line: String, meant: String?) {
        let words = line.split(separator: " ").map(String.init)

        #expect(UsageError.suggestion(for: words, below: LarderCommand.self) == meant.map { "Did you mean \($0)?" })
    }

    @Test(
        "The arguments of an invalid command line select JSON in each form",
        arguments: ["--json", "-o json", "--output=json"])
    func jsonIsSelected(line: String) {
        #expect(OutputOptions.areJSON(["jbos"] + line.split(separator: " ").map(String.init)))
        #expect(!OutputOptions.areJSON(["-o", "text", "json"]))
    }
}
