import Foundation
import Testing

/// The tools of ffmpeg, which make media for tests and list its packets.
enum FFmpeg {
    /// Suites that need the tools are skipped without them.
    static let isAvailable = FileManager.default.isExecutableFile(atPath: "/usr/bin/ffmpeg")

    /// Runs a tool and returns its standard output. Fails the test unless it ends with status 0.
    @discardableResult
    static func run(_ tool: String = "ffmpeg", _ arguments: [String], in directory: URL? = nil) throws -> String {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/\(tool)")
        process.arguments =
            ["-hide_banner", "-v", "error"] + (tool == "ffmpeg" ? ["-nostdin", "-y"] : []) + arguments
        process.currentDirectoryURL = directory
        let output = Pipe()
        process.standardOutput = output
        // A second pipe could fill while the first one is read.
        process.standardError = FileHandle.nullDevice
        try process.run()
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        try #require(process.terminationStatus == 0, "\(tool) \(arguments) failed.")
        return text
    }
}
