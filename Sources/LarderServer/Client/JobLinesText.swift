import ArgumentParser
import CacheCore
import Foundation

/// The body of a job in lines, made from a file with an asset on each line.
struct JobLinesText {
    /// The members of the job on the first line, then an item for each line of the file.
    private(set) var body: String
    /// The number of items.
    private(set) var count = 0

    /// Reads a file, `-` for standard input. A line is an item as JSON, a path below the origin, or a URL.
    ///
    /// - Parameters:
    ///   - shared: The members of items that are not JSON.
    ///   - job: The members of the job.
    init(reading file: String, origin: String?, shared: [JSON.Member], job: [JSON.Member]) throws {
        let bytes: Data
        do {
            bytes =
                file == "-"
                ? try FileHandle.standardInput.readToEnd() ?? Data() : try Data(contentsOf: URL(fileURLWithPath: file))
        } catch {
            throw ValidationError("The file \(file) cannot be read.")
        }
        self.init(String(decoding: bytes, as: UTF8.self), origin: origin, shared: shared, job: job)
    }

    init(_ text: String, origin: String?, shared: [JSON.Member], job: [JSON.Member]) {
        body = JSON.object([.init("job", .object(job))]).text
        for line in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline) {
            body += "\n"
            let name = line.trimmingCharacters(in: .whitespaces)
            guard !name.isEmpty else { continue }
            count += 1
            guard !name.hasPrefix("{") else {
                body += name
                continue
            }
            let asset: [JSON.Member] =
                if let origin {
                    [.init("origin", .string(origin)), .init("path", .string(name))]
                } else {
                    [.init("url", .string(name))]
                }
            body += JSON.object(asset + shared).text
        }
    }

    /// The error with the number of the line in the file.
    static func renumbered(_ error: ClientError) -> ClientError {
        guard error.message.hasPrefix("Line "), let end = error.message.firstIndex(of: ":"),
            let line = Int(error.message[..<end].dropFirst(5)), line > 1
        else { return error }
        var renumbered = error
        renumbered.message = "Line \(line - 1)\(error.message[end...])"
        return renumbered
    }
}
