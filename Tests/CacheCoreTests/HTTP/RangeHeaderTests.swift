import CacheCore
import Testing
import TestChance

@Suite struct RangeHeaderTests {
    private static let readable: [(String, [RangeHeader.Spec])] = [
        ("bytes=0-499", [RangeHeader.Spec.closed(first: 0, last: 499)]),
        ("bytes=500-", [.from(first: 500)]),
        ("bytes=-500", [.suffix(500)]),
        ("bytes=0-0,-1", [.closed(first: 0, last: 0), .suffix(1)]),
        ("BYTES=1-2", [.closed(first: 1, last: 2)]),
        (" bytes=1-2 ", [.closed(first: 1, last: 2)]),
        (
            "bytes= 0-999, 4500-5499, -1000",
            [.closed(first: 0, last: 999), .closed(first: 4500, last: 5499), .suffix(1000)]
        ),
        ("bytes=,0-1,,\t2-3,", [.closed(first: 0, last: 1), .closed(first: 2, last: 3)]),
        ("bytes=0-99999999999999999999", [.closed(first: 0, last: .max)]),
        ("bytes=99999999999999999999-", [.from(first: .max)]),
        ("bytes=-99999999999999999999", [.suffix(.max)]),
        ("bytes=007-008", [.closed(first: 7, last: 8)]),
    ]

    @Test("Parses ranges", arguments: readable)
    func readsRanges(text: String, specs: [RangeHeader.Spec]) {
        #expect(RangeHeader.parse(text) == .ranges(specs))
    }

    @Test(
        "Ignores malformed ranges",
        arguments: [
            "", "bytes", "bytes=", "bytes=,", "bytes=-", "bytes=a-b", "bytes=5-4", "bytes=1", "bytes=0-1;2-3",
            "bytes=0 - 1",
            "bytes=0-1,x", "bytes=0-1,5-4", "items=0-1", "bytes =0-1", "bytes=+1-2", "bytes=0x1-2", "bytes=--1",
            "bytes=1--2",
            "bytes=1-2-3", "bytes=٣-٤", "=0-1", "seconds=1-2",
        ])
    func ignoresWhatIsNoRange(text: String) {
        #expect(RangeHeader.parse(text) == .ignored)
    }

    @Test("A missing header is no range")
    func isAbsentWithoutAHeader() {
        #expect(RangeHeader.parse(nil) == .absent)
        #expect(RangeHeader.absent.resolve(length: 10) == .whole)
        #expect(RangeHeader.ignored.resolve(length: 10) == .whole)
    }

    @Test("Ignores more ranges than the limit")
    func ignoresMoreRangesThanTheCap() {
        let all = Array(repeating: "0-0", count: RangeHeader.maxSpecs).joined(separator: ",")

        #expect(RangeHeader.parse("bytes=" + all) != .ignored)
        #expect(RangeHeader.parse("bytes=" + all + ",0-0") == .ignored)
    }

    private static let resolvable: [(String, [ByteRange])] = [
        ("bytes=0-499", [0..<500 as ByteRange]),
        ("bytes=500-999", [500..<1000]),
        ("bytes=-500", [9500..<10000]),
        ("bytes=9500-", [9500..<10000]),
        ("bytes=0-0,-1", [0..<1, 9999..<10000]),
        ("bytes=500-600,601-999", [500..<1000]),
        ("bytes=500-700,601-999", [500..<1000]),
        ("bytes=0-99999999999999999999", [0..<10000]),
        ("bytes=-99999", [0..<10000]),
        ("bytes=50-59,0-9", [50..<60, 0..<10]),
        ("bytes=50-59,0-9,60-69", [50..<70, 0..<10]),
        ("bytes=60-69,0-9,50-59", [50..<70, 0..<10]),
        ("bytes=0-1,20000-", [0..<2]),
        ("bytes=-0,3-4", [3..<5]),
    ]

    @Test("Resolves ranges within ten thousand bytes", arguments: resolvable)
    func findsRunsInTenThousandBytes(text: String, runs: [ByteRange]) {
        #expect(RangeHeader.parse(text).resolve(length: 10_000) == .runs(runs))
    }

    @Test(
        "A range outside the asset is unsatisfiable",
        arguments: ["bytes=10000-", "bytes=-0", "bytes=10000-10001,-0", "bytes=99999999999999999999-"])
    func isUnsatisfiableOutsideTheAsset(text: String) {
        #expect(RangeHeader.parse(text).resolve(length: 10_000) == .unsatisfiable)
    }

    @Test("Ranges larger than the asset in sum get the whole")
    func answersTheWholeWhereRangesTogetherExceedTheAsset() {
        #expect(RangeHeader.parse("bytes=0-,0-").resolve(length: 100) == .whole)
        #expect(RangeHeader.parse("bytes=0-59,50-99").resolve(length: 100) == .whole)
    }

    @Test("More runs than a response allows get the whole")
    func answersTheWholeForMoreRunsThanAnAnswerHas() {
        func header(_ count: Int) -> RangeHeader {
            RangeHeader.parse("bytes=" + (0..<count).map { "\($0 * 10)-\($0 * 10)" }.joined(separator: ","))
        }

        #expect(header(17).resolve(length: 1000) == .whole)
        guard case .runs(let runs) = header(16).resolve(length: 1000) else {
            Issue.record("16 ranges must be resolved separately.")
            return
        }
        #expect(runs.count == 16)
    }

    @Test("An empty asset satisfies only suffix ranges")
    func anEmptyAssetSatisfiesOnlySuffixes() {
        #expect(RangeHeader.parse("bytes=0-").resolve(length: 0) == .unsatisfiable)
        #expect(RangeHeader.parse("bytes=-5").resolve(length: 0) == .whole)
    }

    @Test("Resolves exactly the requested bytes")
    func resolvesEveryByteAskedForAndNoOther() {
        var (random, seed) = SeededRandom.announced()
        for _ in 0..<2000 {
            let length = Int64.random(in: 1..<200, using: &random)
            var wanted = Set<Int64>()
            var sum: Int64 = 0
            let specs = (0..<Int.random(in: 1..<6, using: &random)).map { _ in
                let first = Int64.random(in: 0..<220, using: &random)
                let last = first + Int64.random(in: 0..<40, using: &random)
                let run = (first..<last + 1).clamped(to: 0..<length)
                wanted.formUnion(run)
                sum += run.length
                return "\(first)-\(last)"
            }
            let resolved = RangeHeader.parse("bytes=" + specs.joined(separator: ",")).resolve(length: length)
            switch resolved {
            case .whole: #expect(sum > length, "seed \(seed)")
            case .unsatisfiable: #expect(wanted.isEmpty, "seed \(seed)")
            case .runs(let runs):
                #expect(Set(runs.joined()) == wanted, "seed \(seed)")
                #expect(runs.reduce(0) { $0 + $1.length } == Int64(wanted.count), "seed \(seed)")
                #expect(ByteRangeSet(runs).runs.count == runs.count, "seed \(seed)")
            }
        }
    }
}

struct SingleRangeTests {
    @Test("The fast range parser agrees with the full parser")
    func whatIsReadAtOnceIsWhatTheWholeReaderReads() {
        let pieces = [
            "bytes=", "bytes", "Bytes=", "=", "-", "--", "0", "7", "99", "100", "101", "999999999999999999",
            "9999999999999999999", " ", ",", "", "x", "00012",
        ]
        let pairs = pieces.flatMap { first in pieces.map { first + $0 } }
        for text in pairs.flatMap({ first in pairs.map { first + $0 } }) {
            for length in [0, 1, 100] as [Int64] {
                let single = Array(text.utf8).withUnsafeBytes { RangeHeader.single($0, length: length) }
                guard let single else { continue }
                #expect(RangeHeader.parse(text).resolve(length: length) == .runs([single]), "\(text)")
            }
        }
    }

    @Test(
        "The fast range parser accepts plain single ranges",
        arguments: [
            ("bytes=0-0", 0..<1), ("bytes=5-", 5..<100), ("bytes=-7", 93..<100), ("bytes=90-200", 90..<100),
            ("bytes=-200", 0..<100), ("bytes=100-", nil), ("bytes=-0", nil), ("bytes=9-5", nil), ("bytes=1-2,3-4", nil),
        ] as [(String, ByteRange?)])
    func plainOnesAreRead(text: String, run: ByteRange?) {
        #expect(Array(text.utf8).withUnsafeBytes { RangeHeader.single($0, length: 100) } == run)
    }
}
