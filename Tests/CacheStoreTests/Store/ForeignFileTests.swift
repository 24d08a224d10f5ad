import CacheCore
import CacheStore
import CacheTestKit
import Foundation
import Glibc
import Testing

@Suite struct ForeignFileTests {
    let testStore: TestStore
    let directory: TemporaryDirectory
    private let files = FileManager.default

    init() throws {
        testStore = try TestStore()
        directory = try TemporaryDirectory()
        try files.createDirectory(atPath: directory.path("in/deep"), withIntermediateDirectories: true)
        try files.createDirectory(atPath: directory.path("in-beside"), withIntermediateDirectories: true)
        for name in ["in/a", "in/deep/b", "outside", "in-beside/c"] {
            #expect(files.createFile(atPath: directory.path(name), contents: Data(name.utf8)))
        }
        try files.createSymbolicLink(atPath: directory.path("in/link"), withDestinationPath: "deep/b")
        try files.createSymbolicLink(atPath: directory.path("in/out"), withDestinationPath: "../outside")
        try files.createSymbolicLink(atPath: directory.path("in/far"), withDestinationPath: directory.path("outside"))
        #expect(mkfifo(directory.path("in/pipe"), 0o600) == 0)
    }

    private func read(_ path: String, limit: Int = 100) throws -> String {
        String(
            decoding: try testStore.store.readForeign(path, below: directory.path("in"), limit: limit), as: UTF8.self)
    }

    @Test("Files below the directory are readable")
    func filesBelowTheDirectoryAreRead() throws {
        #expect(try read("a") == "in/a")
        #expect(try read("deep/b") == "in/deep/b")
        #expect(try read("link") == "in/deep/b")
    }

    @Test(
        "Paths outside the directory and non-regular files are not found",
        arguments: [
            "../outside", "deep/../../outside", "/etc/passwd", "out", "far", "none", "a/b", "deep", ".", "", "pipe",
            "../in-beside/c",
        ])
    func nothingLeadsOutAndOnlyFilesCount(_ path: String) {
        let error = #expect(throws: CacheError.self) { try read(path) }

        #expect(error?.code == .notFound)
    }

    @Test("A file above the size limit is rejected")
    func aFileThatIsTooLongIsRefused() {
        let error = #expect(throws: CacheError.self) { try read("a", limit: 3) }

        #expect(error?.code == .payloadTooLarge)
    }
}
