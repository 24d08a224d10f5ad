import Foundation
import Testing

/// Lines of a document that a table of the code determines. With the environment variable `UPDATE_DOCUMENTS=1` a test
/// writes them; otherwise it compares them.
struct GeneratedLines {
    /// The path in the repository.
    let file: String
    /// The line before them.
    let header: String
    /// Whether a line belongs to them.
    let contains: (String) -> Bool

    /// A table in Markdown. `header`: its first line.
    static func table(_ header: String, in file: String) -> GeneratedLines {
        let columns = header.count { $0 == "|" } - 1
        return GeneratedLines(
            file: file, header: header + "\n|" + String(repeating: "---|", count: columns),
            contains: { $0.hasPrefix("|") })
    }

    func check(_ lines: [String]) throws {
        let url = URL(fileURLWithPath: #filePath).appendingPathComponent("../../../../\(file)").standardized
        let text = try String(contentsOf: url, encoding: .utf8)
        let start = try #require(text.range(of: header + "\n"), "\(file) has no line \(header)").upperBound
        let rest = text[start...].components(separatedBy: "\n")
        let present = rest.prefix(while: contains)
        if ProcessInfo.processInfo.environment["UPDATE_DOCUMENTS"] == "1" {
            let updated = text[..<start] + (lines + rest.dropFirst(present.count)).joined(separator: "\n")
            try Data(updated.utf8).write(to: url)
        } else {
            #expect(Array(present) == lines, "Run this test with UPDATE_DOCUMENTS=1.")
        }
    }
}
