import CacheCore
import Foundation
import Testing

@testable import CacheAPI

/// The table of error codes. Documents are made from it: after a change of a code, run this suite once with the
/// environment variable `UPDATE_DOCUMENTS=1`.
@Suite struct ErrorCodeTests {
    @Test("The list of codes contains each case")
    func theListIsComplete() throws {
        let file = URL(fileURLWithPath: #filePath)
            .appendingPathComponent("../../../../Sources/CacheCore/Model/CacheError+Codes.swift").standardized
        let source = try String(contentsOf: file, encoding: .utf8)
        let cases = try #require(source.range(of: "enum Code")).upperBound
        let declared = source[cases...].prefix(upTo: try #require(source[cases...].range(of: "\n    }")).lowerBound)
            .matches(of: /case `?(\w+)/).map { String($0.1) }
        let listed = CacheError.Code.table.map { "\($0.code)".prefix { $0 != "(" } }.map(String.init)
        #expect(listed.sorted() == declared.sorted())
        // A code with another payload has the same row.
        let codes: [CacheError.Code] = [
            .methodNotAllowed(allow: "GET"), .rangeNotSatisfiable(length: 1), .invalidField("a"),
            .upstreamUnreachable(retryAfter: .zero), .upstreamUnusable(asRange: true), .upstreamRefused(status: 404),
            .upstreamTimedOut(.connect),
        ]
        for code in codes { #expect("\(code)".hasPrefix("\(code.row.code)".prefix { $0 != "(" })) }
        let payloads = source[cases...].prefix(upTo: try #require(source[cases...].range(of: "\n    }")).lowerBound)
            .matches(of: /case `?(\w+)\(/).map { String($0.1) }
        #expect(codes.map { String("\($0)".prefix { $0 != "(" }) } == payloads)
    }

    /// The rows of all codes with a name of their own.
    private static let documented = CacheError.Code.table.filter { !$0.cause.isEmpty && !$0.remedy.isEmpty }

    @Test("A code is retried, answered with stale content or with a fallback only if a request can succeed later")
    func traitsFitTheParty() {
        for code in Self.documented.map(\.code) {
            #expect(!code.isUpstreamFailure || code.blame == .upstream && code.deservesFallback, "\(code.name)")
            #expect(!code.isWorthRetrying || [.upstream, .larder].contains(code.blame), "\(code.name)")
            #expect(!code.isOfReader || !code.isWorthRetrying, "\(code.name)")
        }
    }

    @Test("docs/troubleshooting.md has the cause and the remedy of each code")
    func causesAndRemediesAreDocumented() throws {
        try GeneratedLines.table("| code | status | by | cause | action |", in: "docs/troubleshooting.md").check(
            Self.documented.map { row in
                let content = row.contentStatus.map { "; content: \($0)" } ?? ""
                return "| `\(row.name)` | \(row.status)\(content) | \(row.code.blame) | \(row.cause) | \(row.remedy) |"
            })
    }

    @Test("docs/api.md has the codes of each status")
    func statusesAreDocumented() throws {
        let codes = Dictionary(grouping: Self.documented, by: \.status).sorted {
            $0.key < $1.key
        }
        try GeneratedLines.table("| status | codes |", in: "docs/api.md").check(
            codes.map { "| \($0) | \($1.map { "`\($0.name)`" }.joined(separator: ", ")) |" })
    }

    @Test("openapi.yaml has each code")
    func codesAreInTheSchema() throws {
        try GeneratedLines(file: "openapi.yaml", header: "    ErrorCode:\n      type: string\n      enum:") {
            $0.hasPrefix("        - ")
        }.check(Self.documented.map { "        - \($0.name)" })
    }
}
