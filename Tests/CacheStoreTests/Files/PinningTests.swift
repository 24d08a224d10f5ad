import CacheCore
import CacheTestKit
import Glibc
import Synchronization
import Testing

@testable import CacheStore

/// Punches and rewrites of bytes that the kernel is sending from the file.
@Suite struct PinningTests {
    /// Socket pair. Sent bytes wait in the socket as references to file pages until the other end receives them.
    private final class Wire {
        private var ends: [Int32] = [-1, -1]

        init() { socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) }

        deinit { for end in ends { close(end) } }

        /// Sends the range with a single sendfile() call.
        func send(_ range: ByteRange, of file: SparseFile) throws {
            let pin = try #require(file.pinForSendfile(range))
            var offset = off_t(range.lowerBound)
            #expect(sendfile(ends[0], pin.descriptor.number, &offset, Int(range.length)) == Int(range.length))
        }

        func receive(_ count: Int) -> [UInt8] {
            var (bytes, filled) = ([UInt8](repeating: 0xFF, count: count), 0)
            while filled < count {
                let got = bytes.withUnsafeMutableBytes {
                    read(ends[1], $0.baseAddress?.advanced(by: filled), count - filled)
                }
                guard got > 0 else { break }
                filled += got
            }
            return bytes
        }
    }

    private static let size: Int64 = 8 << 20
    /// Neither end is aligned to a page.
    private static let sent: ByteRange = 3_000_100..<3_100_000

    /// A store with its file on disk and in the page cache; nil if the file system does not report page references.
    private func filled(
        freed: @escaping @Sendable (FileName, Int64) -> Void = { _, _ in }
    ) async throws -> (testStore: TestStore, file: SparseFile)? {
        let testStore = try TestStore(freed: freed)
        let file = try testStore.fill(1, length: Self.size, 0..<Self.size)
        try await testStore.commits.flush()
        return testStore.store.descriptors.tellsReferences ? (testStore, file) : nil
    }

    @Test("A punch waits until bytes in the socket have been received")
    func whatIsOnItsWayIsNotClearedAndGoesWhenItHasArrived() async throws {
        let freed = Mutex<Int64>(0)
        let filled = try await filled(freed: { _, bytes in freed.withLock { $0 += bytes } })
        guard let (testStore, file) = filled else { return }
        let wire = Wire()
        try wire.send(Self.sent, of: file)

        let full = try file.diskBytes()
        try await testStore.commits.punch(file, [2_500_000..<3_050_000, 3_060_000..<3_070_001])
        #expect(try file.diskBytes() == full)
        #expect(try file.bytes(3_000_100..<3_050_000).isSame(as: TestStore.content(3_000_100..<3_050_000)))

        #expect(wire.receive(Int(Self.sent.length)).isSame(as: TestStore.content(Self.sent)))
        #expect(
            try await eventually {
                try await testStore.commits.flush()
                return try file.diskBytes() < full - 500_000
            })
        #expect(try file.diskBytes() == full - freed.withLock { $0 })
        #expect(try file.bytes(2_500_000..<3_050_000).allSatisfy { $0 == 0 })
        #expect(try file.bytes(3_070_001..<Self.size).isSame(as: TestStore.content(3_070_001..<Self.size)))
    }

    @Test("Bytes in a socket are not cleared after the file was closed and opened again")
    func bytesOfAnEarlierObject() async throws {
        guard let (testStore, name, wire) = try await sentAndClosed() else { return }
        let opened = try #require(try testStore.store.openFile(name))
        try await testStore.commits.punch(opened, [3_000_200..<3_050_000])
        #expect(wire.receive(Int(Self.sent.length)).isSame(as: TestStore.content(Self.sent)))
        #expect(
            try await eventually {
                try await testStore.commits.flush()
                return try opened.bytes(3_000_200..<3_050_000).allSatisfy { $0 == 0 }
            })
    }

    /// A store whose file was closed after the range was sent; nil as ``filled(freed:)``.
    private func sentAndClosed() async throws -> (testStore: TestStore, name: FileName, wire: Wire)? {
        guard let (testStore, file) = try await filled() else { return nil }
        let wire = Wire()
        try wire.send(Self.sent, of: file)
        return (testStore, try #require(file.name), wire)
    }

    @Test("The punches of a start leave alone what was fetched since, also after its removal began")
    func punchesOfAStart() async throws {
        let directory: TemporaryDirectory
        do {
            let killed = try TestStore()
            directory = killed.directory
            let file = try killed.fill(1, 0..<300_000)
            try await killed.commits.flush()
            try file.write(at: 300_000, TestStore.content(300_000..<900_000))
            try killed.store.close(isOrderly: false)
        }
        let testStore = try TestStore(in: directory)
        let file = try #require(try await testStore.store.load(TestStore.id(1))?.file)
        #expect(file.holdIfUnwritten([300_000..<900_000]))
        try testStore.grow(file, 300_000..<600_000)
        try await testStore.commits.flush()
        testStore.commits.cut(file, [300_000..<600_000])
        _ = try file.punchHeld(in: ByteRangeSet([300_000..<900_000]))
        // The catalog claims these bytes until the commit.
        #expect(try file.bytes(300_000..<600_000) == TestStore.content(300_000..<600_000))
        try await testStore.commits.flush()
        #expect(
            try await eventually {
                try await testStore.commits.flush()
                return try file.bytes(300_000..<900_000).allSatisfy { $0 == 0 }
            })
    }

    @Test("Whole blocks are punched at once, and their bytes are still received")
    func wholeBlocksGoAtOnceAndTheirBytesArriveAllTheSame() async throws {
        guard let (testStore, file) = try await filled() else { return }
        let wire = Wire()
        try wire.send(Self.sent, of: file)

        let full = try file.diskBytes()
        try await testStore.commits.punch(file, [0..<Self.size])

        #expect(try file.diskBytes() <= full - Self.size + 65536)
        #expect(wire.receive(Int(Self.sent.length)).isSame(as: TestStore.content(Self.sent)))
    }

    @Test("Pinned bytes stay unchanged until the pin is released")
    func whatTheKernelStillHasToTakeStaysAsItIs() async throws {
        guard let (testStore, file) = try await filled() else { return }
        let full = try file.diskBytes()
        var pin = file.pinForSendfile(Self.sent)
        #expect(pin != nil)
        try await testStore.commits.punch(file, [0..<Self.size])
        #expect(try file.bytes(Self.sent).isSame(as: TestStore.content(Self.sent)))

        pin = nil
        #expect(
            try await eventually {
                try await testStore.commits.flush()
                return try file.diskBytes() <= full - Self.size + 65536
            })
    }

    @Test("A retried punch spares bytes that were marked again after a rewrite")
    func aHoleThatIsTriedAgainIsNotMadeInWhatWasMarkedAnew() async throws {
        guard let (testStore, file) = try await filled() else { return }
        let marked: ByteRange = 3_000_000..<3_050_000
        let wire = Wire()
        try wire.send(Self.sent, of: file)
        file.markForPunch([marked])
        #expect(try file.punchMarked(in: ByteRangeSet([marked])).byteCount > 0)
        #expect(wire.receive(Int(Self.sent.length)).isSame(as: TestStore.content(Self.sent)))

        // Rewrite the range and mark it again. The commit of the second mark is still pending.
        try testStore.grow(file, marked)
        file.markForPunch([marked])
        #expect(try file.punchHeld(in: ByteRangeSet([marked])).isEmpty)
        #expect(try file.bytes(marked).isSame(as: TestStore.content(marked)))
    }

    @Test("Bytes rewritten before a deferred punch stay")
    func whatIsWrittenAnewBeforeItsTurnStays() async throws {
        guard let (testStore, file) = try await filled() else { return }
        let wire = Wire()
        try wire.send(Self.sent, of: file)
        try await testStore.commits.punch(file, [3_000_000..<3_050_000])

        try testStore.grow(file, 3_000_000..<3_040_000)

        #expect(wire.receive(Int(Self.sent.length)).isSame(as: TestStore.content(Self.sent)))
        #expect(
            try await eventually {
                try await testStore.commits.flush()
                return try file.bytes(3_040_000..<3_050_000).allSatisfy { $0 == 0 }
            })
        #expect(try file.bytes(3_000_000..<3_040_000).isSame(as: TestStore.content(3_000_000..<3_040_000)))
    }

    @Test("A range outside the page cache cannot be pinned")
    func whatIsNotInThePageCacheIsNotLent() async throws {
        guard let (testStore, file) = try await filled() else { return }
        #expect(file.pinForSendfile(Self.sent) != nil)
        try file.withDescriptor { descriptor throws(CacheError) in
            #expect(testStore.disk.drops(descriptor, 0..<Self.size, of: 0..<Self.size))
        }
        #expect(file.pinForSendfile(Self.sent) == nil)
        _ = try file.bytes(Self.sent)
        #expect(file.pinForSendfile(Self.sent) != nil)
    }

    @Test("An unpinned range is punched immediately")
    func whatNobodyWasLentGoesAtOnce() async throws {
        guard let (testStore, file) = try await filled() else { return }
        let full = try file.diskBytes()
        try await testStore.commits.punch(file, [100_000..<1_100_000])
        #expect(try file.diskBytes() <= full - 990_000)
    }

    @Test("Deferred punches do not retain a removed file")
    func aFileThatIsGoneIsNotHeldByHolesThatAreStillToBeMade() async throws {
        guard let (testStore, kept) = try await filled() else { return }
        let wire = Wire()
        weak var gone: SparseFile?
        do {
            let file = try testStore.fill(2, length: Self.size, 0..<Self.size)
            try await testStore.commits.flush()
            try wire.send(Self.sent, of: file)
            try await testStore.commits.punch(file, [3_000_000..<3_050_000])
            testStore.commits.discard(TestStore.id(2))
            try await testStore.commits.flush()
            gone = file
        }
        #expect(gone == nil && kept.name != nil)
        #expect(wire.receive(Int(Self.sent.length)).isSame(as: TestStore.content(Self.sent)))
    }
}
