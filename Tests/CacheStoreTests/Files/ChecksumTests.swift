import CLinux
import CacheCore
import Testing

@testable import CacheStore
import TestChance

@Suite struct ChecksumTests {
    /// RFC 3720, appendix B.4.
    private static let published: [(bytes: [UInt8], sum: UInt32)] = [
        ([UInt8](repeating: 0, count: 32), 0x8A91_36AA),
        ([UInt8](repeating: 0xFF, count: 32), 0x62A8_AB43),
        (Array(0...31), 0x46DD_794E),
        (Array((0...31).reversed()), 0x113F_DB5C),
        (
            [
                0x01, 0xC0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x14, 0, 0, 0, 0, 0, 0x04, 0, 0, 0, 0, 0x14,
                0, 0, 0, 0x18, 0x28, 0, 0, 0, 0, 0, 0, 0, 0x02, 0, 0, 0, 0, 0, 0, 0,
            ], 0xD996_3A56
        ),
        (Array("123456789".utf8), 0xE306_9283), ([], 0),
    ]

    @Test("The instruction and the table give the published checksums")
    func publishedVectorsByInstructionAndByTable() {
        for (bytes, sum) in Self.published {
            #expect(Checksum.of(bytes) == sum)
            #expect(larder_crc32c_by_table(0, bytes, bytes.count) == sum)
        }
    }

    @Test("Instruction and table agree for every length and alignment")
    func instructionAndTableAgreeAtEveryLengthAndAlignment() {
        var random = SeededRandom(seed: 32)
        let bytes = random.bytes(40_000)
        for round in 0..<400 {
            let start = Int(random.next() % 64)
            let count = round < 200 ? round : Int(random.next() % 39_000)
            let earlier = UInt32(truncatingIfNeeded: random.next())
            bytes.withUnsafeBytes { all in
                let part = UnsafeRawBufferPointer(rebasing: all[start..<start + count])
                #expect(
                    Checksum.of(part, after: earlier) == larder_crc32c_by_table(earlier, part.baseAddress, count))
            }
        }
    }

    @Test("The checksum of a concatenation follows from the checksums of its parts")
    func theSumOfTwoRunsFollowsFromTheirSums() {
        var random = SeededRandom(seed: 33)
        let bytes = random.bytes(100_000)
        for round in 0..<300 {
            let length = round < 100 ? round : Int(random.next() % 100_000)
            let middle = length == 0 ? 0 : Int(random.next() % UInt64(length + 1))
            let (first, second) = (Array(bytes[..<middle]), Array(bytes[middle..<length]))
            let whole = Checksum.of(second, after: Checksum.of(first))
            #expect(whole == Checksum.of(Array(bytes[..<length])))
            #expect(
                CRC32C.combine(Checksum.of(first), Checksum.of(second), secondLength: Int64(second.count)) == whole)
        }
    }
}
