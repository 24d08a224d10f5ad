import CacheCore
import Foundation
import Testing

@testable import CacheStore
import TestChance

/// Random test of the checksum bookkeeping against a file in an array. Every claimed range has the checksum of its
/// bytes. A corrupted byte never gets a new checksum.
@Suite struct BlockSumsModelTests {
    /// A file in an array with its checksums and its uncommitted changes.
    private struct Model {
        static let size = 5 * BlockChecksums.blockBytes + 1234
        /// Whether the checksums are keyed: then adjacent ones cannot be combined without the bytes.
        let isKeyed: Bool
        var random: SeededRandom
        let content: [UInt8]
        var file = [UInt8](repeating: 0, count: Int(Model.size))
        var sums = BlockChecksums()
        var claimed = ByteRangeSet()
        /// Checksums of the writes since the last commit, reported or not.
        var written = BlockChecksums()
        var growth = ByteRangeSet()
        var cuts = ByteRangeSet()
        var rotten: Set<Int64> = []
        var hasRotted = false

        init(seed: UInt64, isKeyed: Bool) {
            self.isKeyed = isKeyed
            random = SeededRandom(seed: seed)
            var bytes = SeededRandom(seed: seed &+ 1)
            content = bytes.bytes(Int(Model.size), set: 1)
        }

        mutating func number(_ limit: Int64) -> Int64 { Int64(random.next() % UInt64(limit)) }

        /// A random range, often at a block boundary and often short.
        mutating func range() -> ByteRange {
            let block = BlockChecksums.blockBytes
            let start = number(3) == 0 ? number(5) * block : number(Self.size - 1)
            let length = [1, 100, 70_000, block, 3 * block][Int(number(5))]
            return start..<min(Self.size, start + 1 + number(length))
        }

        func sum(_ range: ByteRange, of file: [UInt8]? = nil) -> BlockSum {
            (file ?? self.file).withUnsafeBytes {
                let bytes = UnsafeRawBufferPointer(rebasing: $0[Int(range.lowerBound)..<Int(range.upperBound)])
                return sum(bytes, at: range.lowerBound)
            }
        }

        private func sum(_ bytes: UnsafeRawBufferPointer, at offset: Int64) -> BlockSum {
            let sum = Checksum.of(bytes)
            return isKeyed ? .keyed(high: UInt64(sum), low: UInt64(offset)) : .crc32C(sum)
        }

        mutating func write() {
            var range = range()
            while !range.isEmpty {
                let part = range.prefix(1 + number(100_000))
                let (first, end) = (Int(part.lowerBound), Int(part.upperBound))
                file.replaceSubrange(first..<end, with: content[first..<end])
                for offset in rotten where part.contains(offset) { rotten.remove(offset) }
                written.remove(touching: part)
                // Omit the checksums of some writes, as if they had been reported with other bounds.
                if number(8) > 0 {
                    file.withUnsafeBytes { bytes in
                        let pieces = Checksum.pieces(
                            of: UnsafeRawBufferPointer(rebasing: bytes[first..<end]), at: part.lowerBound,
                            sum: sum(_:at:))
                        for piece in pieces { written.insert(piece, joining: false) }
                    }
                }
                if number(10) > 0 { growth.insert(part) }
                range = part.upperBound..<range.upperBound
            }
        }

        mutating func cut() {
            let range = range()
            cuts.insert(range)
            growth.remove(range)
            written.remove(touching: range)
        }

        /// Models a commit: first the cuts, then the growth, then the punches.
        mutating func commit() throws {
            let (file, model) = (file, self)
            for run in cuts.runs { claimed.remove(run) }
            giveUp(try sums.release(cuts) { model.sum($0, of: file) })
            for run in growth.runs { claimed.insert(run) }
            giveUp(try sums.claim(growth.runs, written: written) { model.sum($0, of: file) })
            for run in cuts.runs {
                for hole in growth.gaps(in: run) {
                    let place = Int(hole.lowerBound)..<Int(hole.upperBound)
                    self.file.replaceSubrange(place, with: [UInt8](repeating: 0, count: place.count))
                    rotten = rotten.filter { !hole.contains($0) }
                }
            }
            (written, growth, cuts) = (BlockChecksums(), ByteRangeSet(), ByteRangeSet())
        }

        private mutating func giveUp(_ bad: [ByteRange]) {
            for range in bad { claimed.remove(range) }
            for range in bad { #expect(!rotten.isEmpty, "The intact range \(range) was discarded.") }
        }

        /// Models a kill: discards uncommitted state; the bytes stay in the file.
        mutating func kill() { (written, growth, cuts) = (BlockChecksums(), ByteRangeSet(), ByteRangeSet()) }

        mutating func rot() {
            hasRotted = true
            guard !claimed.isEmpty else { return }
            let run = claimed.runs[Int(number(Int64(claimed.runs.count)))]
            let offset = run.lowerBound + number(run.length)
            file[Int(offset)] ^= 1 << UInt8(number(8))
            if file[Int(offset)] == content[Int(offset)] { rotten.remove(offset) } else { rotten.insert(offset) }
        }

        func check(_ label: Comment) {
            #expect(ByteRangeSet(sums.pieces.map(\.range)) == claimed, label)
            for piece in sums.pieces {
                let isRotten = rotten.contains { piece.range.contains($0) }
                #expect((sum(piece.range) == piece.sum) == !isRotten, label)
                #expect(BlockChecksums.cut(piece.range).count == 1, label)
            }
            guard !hasRotted else { return }
            // Adjacent runs of a block are one piece; keyed ones at last when they make up the block.
            for (piece, next) in zip(sums.pieces, sums.pieces.dropFirst()) where !isKeyed {
                let isJoinable = next.range.lowerBound % BlockChecksums.blockBytes != 0
                #expect(piece.range.upperBound < next.range.lowerBound || !isJoinable, label)
            }
            for block in BlockChecksums.cut(0..<Self.size) where claimed.contains(block) {
                let pieces = sums.pieces(touching: block)
                #expect(pieces.count == 1 || block.length < BlockChecksums.blockBytes && pieces.count <= 8, label)
            }
        }
    }

    @Test("Every claimed byte has the checksum of the byte on disk", arguments: [false, true], [false, true])
    func everyClaimedByteHasTheSumOfWhatIsOnDisk(rots: Bool, isKeyed: Bool) throws {
        for seed in UInt64(1)...(isKeyed ? 8 : 20) {
            var model = Model(seed: seed, isKeyed: isKeyed)
            for step in 0..<60 {
                switch model.number(12) {
                case 0..<5: model.write()
                case 5..<7: model.cut()
                case 7: model.kill()
                case 8 where rots: model.rot()
                default:
                    try model.commit()
                    model.check("seed \(seed), step \(step)")
                }
            }
        }
    }

    @Test("Checksum rows round-trip", arguments: [false, true])
    func rowsAreReadAsTheyWereWritten(isKeyed: Bool) {
        for seed in UInt64(1)...50 {
            var random = SeededRandom(seed: seed)
            var sums = BlockChecksums()
            let row = Int64(seed % 3) * 1000
            let bounds = ChecksumRow.bounds(of: row)
            var position = bounds.lowerBound
            while position < bounds.upperBound {
                let kind = random.next() % 4
                let end = (position / BlockChecksums.blockBytes + 1) * BlockChecksums.blockBytes
                let length = kind < 2 ? end - position : 1 + Int64(random.next() % UInt64(end - position))
                if kind > 0 {
                    let sum: BlockSum =
                        isKeyed
                        ? .keyed(high: random.next(), low: random.next())
                        : .crc32C(UInt32(truncatingIfNeeded: random.next()))
                    sums.insert(BlockChecksums.Piece(range: position..<position + length, sum: sum))
                }
                position += length
            }
            let data = ChecksumRow.encode(sums, file: 7, row: row)
            #expect(ChecksumRow.decode(data, file: 7, row: row) == sums, "seed \(seed)")
            #expect(ChecksumRow.decode(data, file: 8, row: row) == nil)
            #expect(ChecksumRow.decode(data, file: 7, row: row + 1) == nil)
            for _ in 0..<20 {
                var flipped = data
                flipped[Int(random.next() % UInt64(data.count))] ^= 1 << UInt8(random.next() % 8)
                #expect(ChecksumRow.decode(flipped, file: 7, row: row) == nil, "seed \(seed)")
            }
        }
    }

    @Test("A checksum row of complete blocks takes four bytes per block plus six")
    func aWholeRowOfCompleteBlocksTakesFourBytesForEach() {
        let pieces = (0..<64).map { BlockChecksums.Piece(range: ByteRange(offset: $0 << 18, length: 1 << 18), sum: 1) }
        #expect(ChecksumRow.encode(BlockChecksums(pieces), file: 1, row: 0).count == 64 * 4 + 2 + 4)
    }
}
