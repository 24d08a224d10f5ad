import Foundation

/// The executable that was built with the tests.
enum LarderProgram {
    static var url: URL {
        let beside = Bundle.main.bundleURL.deletingLastPathComponent().appending(path: "larder")
        guard !FileManager.default.isExecutableFile(atPath: beside.path) else { return beside }
        return URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent().appending(path: "larder")
    }

    /// Runs the program until it exits, in a shell that first executes `setUp`.
    static func run(
        _ arguments: [String], after setUp: String = ":"
    ) throws -> (status: Int32, output: String, errors: String) {
        let (process, output, errors) = (Process(), Pipe(), Pipe())
        process.executableURL = URL(filePath: "/bin/sh")
        process.arguments = ["-c", setUp + "; exec \"$@\"", "sh", url.path] + arguments
        process.environment = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("LARDER_") }
        (process.standardOutput, process.standardError) = (output, errors)
        try process.run()
        let text = [output, errors].map {
            String(decoding: $0.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        }
        process.waitUntilExit()
        return (process.terminationStatus, text[0], text[1])
    }
}
