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
        let listed = CacheError.Code.documentation.map { "\($0.code)".prefix { $0 != "(" } }.map(String.init)
        // Both have one name.
        #expect((listed + ["upstreamUnusable"]).sorted() == declared.sorted())
    }

    @Test("A code is retried, answered with stale content or with a fallback only if a request can succeed later")
    func traitsFitTheParty() {
        for (code, _, _) in CacheError.Code.documentation {
            #expect(!code.isUpstreamFailure || code.row.blame == .upstream && code.deservesFallback, "\(code.name)")
            #expect(!code.isWorthRetrying || [.upstream, .larder].contains(code.row.blame), "\(code.name)")
            #expect(!code.isOfReader || !code.isWorthRetrying, "\(code.name)")
        }
    }

    @Test("docs/troubleshooting.md has the cause and the remedy of each code")
    func causesAndRemediesAreDocumented() throws {
        try GeneratedLines.table("| code | status | by | cause | action |", in: "docs/troubleshooting.md").check(
            CacheError.Code.documentation.map { code, cause, remedy in
                let content = code.row.contentStatus.map { "; content: \($0)" } ?? ""
                return "| `\(code.name)` | \(code.status)\(content) | \(code.row.blame) | \(cause) | \(remedy) |"
            })
    }

    @Test("docs/api.md has the codes of each status")
    func statusesAreDocumented() throws {
        let codes = Dictionary(grouping: CacheError.Code.documentation.map(\.code), by: \.status).sorted {
            $0.key < $1.key
        }
        try GeneratedLines.table("| status | codes |", in: "docs/api.md").check(
            codes.map { "| \($0) | \($1.map { "`\($0.name)`" }.joined(separator: ", ")) |" })
    }

    @Test("openapi.yaml has each code")
    func codesAreInTheSchema() throws {
        try GeneratedLines(file: "openapi.yaml", header: "    ErrorCode:\n      type: string\n      enum:") {
            $0.hasPrefix("        - ")
        }.check(CacheError.Code.documentation.map { "        - \($0.code.name)" })
    }
}
