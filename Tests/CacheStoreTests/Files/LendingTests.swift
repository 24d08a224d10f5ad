import CacheCore
import CacheTestKit
import Glibc
import Synchronization
import Testing

@testable import CacheStore

/// Bytes that the kernel sends from the file, while others want them gone.
@Suite struct LendingTests {
    /// Two ends of a connection: what is sent on the one waits, as pages of the file, until it is read from the other.
    private final class Wire {
        private var ends: [Int32] = [-1, -1]

        init() { socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) }

        deinit { for end in ends { close(end) } }

        /// The kernel takes all of it.
        func send(_ range: ByteRange, of file: SparseFile) throws {
            let loan = try #require(file.lendNow(range))
            var offset = off_t(range.lowerBound)
            #expect(sendfile(ends[0], loan.descriptor.number, &offset, Int(range.length)) == Int(range.length))
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
    /// Neither end is the beginning of a page.
    private static let sent: ByteRange = 3_000_100..<3_100_000

    /// A store whose file is on the disk and in the page cache; nil where the file system does not tell who refers to it.
    private func filled(
        freed: @escaping @Sendable (FileName, Int64) -> Void = { _, _ in }
    ) async throws -> (shelf: Shelf, file: SparseFile)? {
        let shelf = try Shelf(freed: freed)
        let file = try shelf.fill(1, length: Self.size, 0..<Self.size)
        try await shelf.commits.flush()
        return shelf.store.shelf.tellsReferences ? (shelf, file) : nil
    }

    @Test func whatIsOnItsWayIsNotClearedAndGoesWhenItHasArrived() async throws {
        let freed = Mutex<Int64>(0)
        let filled = try await filled(freed: { _, bytes in freed.withLock { $0 += bytes } })
        guard let (shelf, file) = filled else { return }
        let wire = Wire()
        try wire.send(Self.sent, of: file)

        let full = try file.diskBytes()
        try await shelf.commits.punch(file, [2_500_000..<3_050_000, 3_060_000..<3_070_001])
        #expect(try file.diskBytes() == full)
        #expect(try file.bytes(3_000_100..<3_050_000).isSame(as: Shelf.content(3_000_100..<3_050_000)))

        #expect(wire.receive(Int(Self.sent.length)).isSame(as: Shelf.content(Self.sent)))
        #expect(
            try await eventually {
                try await shelf.commits.flush()
                return try file.diskBytes() < full - 500_000
            })
        #expect(try file.diskBytes() == full - freed.withLock { $0 })
        #expect(try file.bytes(2_500_000..<3_050_000).allSatisfy { $0 == 0 })
        #expect(try file.bytes(3_070_001..<Self.size).isSame(as: Shelf.content(3_070_001..<Self.size)))
    }

    @Test func wholeBlocksGoAtOnceAndTheirBytesArriveAllTheSame() async throws {
        guard let (shelf, file) = try await filled() else { return }
        let wire = Wire()
        try wire.send(Self.sent, of: file)

        let full = try file.diskBytes()
        try await shelf.commits.punch(file, [0..<Self.size])

        #expect(try file.diskBytes() <= full - Self.size + 65536)
        #expect(wire.receive(Int(Self.sent.length)).isSame(as: Shelf.content(Self.sent)))
    }

    @Test func whatTheKernelStillHasToTakeStaysAsItIs() async throws {
        guard let (shelf, file) = try await filled() else { return }
        let full = try file.diskBytes()
        var loan = file.lendNow(Self.sent)
        #expect(loan != nil)
        try await shelf.commits.punch(file, [0..<Self.size])
        #expect(try file.bytes(Self.sent).isSame(as: Shelf.content(Self.sent)))

        loan = nil
        #expect(
            try await eventually {
                try await shelf.commits.flush()
                return try file.diskBytes() <= full - Self.size + 65536
            })
    }

    @Test func aHoleThatIsTriedAgainIsNotMadeInWhatWasMarkedAnew() async throws {
        guard let (shelf, file) = try await filled() else { return }
        let marked: ByteRange = 3_000_000..<3_050_000
        let wire = Wire()
        try wire.send(Self.sent, of: file)
        file.doom([marked])
        #expect(try file.punchDoomed(in: ByteRangeSet([marked])).byteCount > 0)
        #expect(wire.receive(Int(Self.sent.length)).isSame(as: Shelf.content(Self.sent)))

        // Fetched again, and given up again by a commit that is still to come.
        try shelf.grow(file, marked)
        file.doom([marked])
        #expect(try file.punchHeld(in: ByteRangeSet([marked])).isEmpty)
        #expect(try file.bytes(marked).isSame(as: Shelf.content(marked)))
    }

    @Test func whatIsWrittenAnewBeforeItsTurnStays() async throws {
        guard let (shelf, file) = try await filled() else { return }
        let wire = Wire()
        try wire.send(Self.sent, of: file)
        try await shelf.commits.punch(file, [3_000_000..<3_050_000])

        try shelf.grow(file, 3_000_000..<3_040_000)

        #expect(wire.receive(Int(Self.sent.length)).isSame(as: Shelf.content(Self.sent)))
        #expect(
            try await eventually {
                try await shelf.commits.flush()
                return try file.bytes(3_040_000..<3_050_000).allSatisfy { $0 == 0 }
            })
        #expect(try file.bytes(3_000_000..<3_040_000).isSame(as: Shelf.content(3_000_000..<3_040_000)))
    }

    @Test func whatIsNotInThePageCacheIsNotLent() async throws {
        guard let (shelf, file) = try await filled() else { return }
        #expect(file.lendNow(Self.sent) != nil)
        try file.withDescriptor { descriptor throws(CacheError) in
            #expect(shelf.disk.drops(descriptor, 0..<Self.size, of: 0..<Self.size))
        }
        #expect(file.lendNow(Self.sent) == nil)
        _ = try file.bytes(Self.sent)
        #expect(file.lendNow(Self.sent) != nil)
    }

    @Test func whatNobodyWasLentGoesAtOnce() async throws {
        guard let (shelf, file) = try await filled() else { return }
        let full = try file.diskBytes()
        try await shelf.commits.punch(file, [100_000..<1_100_000])
        #expect(try file.diskBytes() <= full - 990_000)
    }

    @Test func aFileThatIsGoneIsNotHeldByHolesThatAreStillToBeMade() async throws {
        guard let (shelf, kept) = try await filled() else { return }
        let wire = Wire()
        weak var gone: SparseFile?
        do {
            let file = try shelf.fill(2, length: Self.size, 0..<Self.size)
            try await shelf.commits.flush()
            try wire.send(Self.sent, of: file)
            try await shelf.commits.punch(file, [3_000_000..<3_050_000])
            shelf.commits.discard(Shelf.id(2))
            try await shelf.commits.flush()
            gone = file
        }
        #expect(gone == nil && kept.name != nil)
        #expect(wire.receive(Int(Self.sent.length)).isSame(as: Shelf.content(Self.sent)))
    }
}
