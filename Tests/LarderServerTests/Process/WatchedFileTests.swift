import CacheTestKit
import Foundation
import Testing

@testable import LarderServer

@Suite struct WatchedFileTests {
    private let directory: TemporaryDirectory
    private let path: String

    init() throws {
        directory = try TemporaryDirectory()
        path = directory.path("file")
    }

    private func stamps(_ text: String) throws -> WatchedFile.Stamps {
        try Data(text.utf8).write(to: URL(filePath: path))
        return WatchedFile.stamps(of: [path])
    }

    /// Checks the file with these stamps at these seconds.
    private func check(_ file: inout WatchedFile, _ checks: [(WatchedFile.Stamps, seconds: Int, isDue: Bool)]) {
        for (stamps, seconds, isDue) in checks {
            let found = file.check(stamps, at: .seconds(seconds))
            #expect(found == isDue, "after \(seconds) s")
        }
    }

    @Test("A change is read after the time without a further change")
    func aChangeIsReadWhenItHasSettled() throws {
        let (first, second, third) = (try stamps("1"), try stamps("12"), try stamps("123"))
        var file = WatchedFile(read: first, settling: .seconds(4))

        check(&file, [(first, 1, false)])
        #expect(!file.hasChanged)
        // Another change starts the time again. The file is due until it is read.
        check(
            &file,
            [
                (second, 2, false), (second, 5, false), (third, 6, false), (third, 9, false), (third, 10, true),
                (third, 11, true),
            ])
        file.markRead(third)
        check(&file, [(third, 12, false)])
        #expect(!file.hasChanged)
    }

    @Test("A file that returns to the content that was read is not read again")
    func aRestoredFileIsNotRead() throws {
        let (first, second) = (try stamps("1"), try stamps("12"))
        var file = WatchedFile(read: first, settling: .seconds(1))

        check(&file, [(second, 1, false), (first, 2, false), (first, 9, false)])
    }

    @Test("A removed file is a change")
    func aRemovedFileIsAChange() throws {
        var file = WatchedFile(read: try stamps("1"), settling: .seconds(1))

        check(&file, [([:], 1, false), ([:], 2, true)])
    }
}
