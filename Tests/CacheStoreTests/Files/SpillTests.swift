import CacheCore
import CacheTestKit
import Glibc
import Testing

@testable import CacheStore
import TestChance

/// Bytes that do not fit on disk stay in memory for their readers and are never claimed.
@Suite struct SpillTests {
    @Test("Bytes that do not fit on disk are read from memory and not claimed")
    func whatFindsNoRoomIsReadFromMemoryAndNotClaimed() async throws {
        let disk = FaultyDisk()
        let testStore = try TestStore(disk: disk)
        let file = try testStore.fill(1, 0..<100_000)
        disk.fail(.write, with: ENOSPC, isLasting: true)
        try testStore.grow(file, 100_000..<400_000)
        try testStore.grow(file, 500_000..<600_000)
        disk.heal()
        try testStore.grow(file, 400_000..<500_000)
        try await testStore.commits.flush()

        #expect(file.spilled.runs == [100_000..<400_000, 500_000..<600_000])
        #expect(try file.bytes(0..<600_000).isSame(as: TestStore.content(0..<600_000)))
        let stored = try await testStore.store.catalog.asset(TestStore.id(1))
        #expect(stored?.extents.runs == [0..<100_000, 400_000..<500_000])

        try testStore.grow(file, 150_000..<200_000)
        testStore.commits.cut(file, [100_000..<150_000, 200_000..<600_000])
        try await testStore.commits.flush()

        #expect(file.spilled.isEmpty)
        let left = try await testStore.store.catalog.asset(TestStore.id(1))
        #expect(left?.extents.runs == [0..<100_000, 150_000..<200_000])
        #expect(try file.bytes(150_000..<200_000).isSame(as: TestStore.content(150_000..<200_000)))
    }

    @Test("A spared disk receives only bytes that do not fit in memory")
    func aDiskThatIsToBeSparedTakesOnlyWhatMemoryDoesNot() async throws {
        let testStore = try TestStore()
        let file = try testStore.fill(1, length: 80 << 20, 0..<100_000)
        testStore.store.preferMemory(true)
        let part: Int64 = 16 << 20
        for index in Int64(0)..<4 { try testStore.grow(file, 1 << 20 + index * part..<1 << 20 + (index + 1) * part) }
        try testStore.grow(file, 70 << 20..<71 << 20)
        testStore.store.preferMemory(false)
        try testStore.grow(file, 72 << 20..<73 << 20)
        try await testStore.commits.flush()

        #expect(file.spilled.runs == [1 << 20..<65 << 20])
        let stored = try await testStore.store.catalog.asset(TestStore.id(1))
        let written: [ByteRange] = [0..<100_000, 70 << 20..<71 << 20, 72 << 20..<73 << 20]
        #expect(stored?.extents.runs == written)
        #expect(try file.bytes(2 << 20..<3 << 20).isSame(as: TestStore.content(2 << 20..<3 << 20)))
    }

    @Test("Spilling the same bytes twice takes memory once")
    func whatComesToMemoryASecondTimeTakesNoMore() throws {
        let testStore = try TestStore()
        let file = try testStore.fill(1, length: 80 << 20, 0..<1000)
        testStore.store.preferMemory(true)
        let before = testStore.store.spareMemory
        for start in stride(from: Int64(1 << 20), to: 1 << 20 + before, by: 1 << 20) {
            try testStore.grow(file, start..<start + 1 << 20)
        }
        #expect(testStore.store.spareMemory == 0)
        try testStore.grow(file, 5 << 20..<7 << 20)

        #expect(file.spilled.runs == [1 << 20..<1 << 20 + before])
        #expect(try file.bytes(4 << 20..<8 << 20).isSame(as: TestStore.content(4 << 20..<8 << 20)))
        file.unspill([0..<Int64.max])
        #expect(testStore.store.spareMemory == before)
    }

    @Test("Without its emergency reserve the store keeps new bytes in memory")
    func nothingTakesWhatTheReserveIsToHave() async throws {
        let disk = FaultyDisk()
        let testStore = try TestStore(disk: disk)
        let file = try testStore.fill(1, 0..<1000)
        #expect(try testStore.store.reserve.release())
        try testStore.grow(file, 1000..<2000)
        try await testStore.commits.flush()
        try testStore.grow(file, 2000..<3000)
        try await testStore.commits.flush()

        #expect(try await testStore.store.catalog.asset(TestStore.id(1))?.extents.runs == [0..<1000, 2000..<3000])
    }

    @Test("The spill allowance is limited")
    func memoryHasItsEndToo() throws {
        let allowance = SpillAllowance(bytes: 1000)
        #expect(allowance.take(600))
        #expect(!allowance.take(600))
        allowance.giveBack(600)
        #expect(allowance.take(1000))
    }

    @Test("Spilled bytes match a byte array through random puts and removals")
    func partsOfWhatIsInMemoryGoAndStayAsTheyAreTold() {
        for seed in UInt64(1)...20 {
            var random = SeededRandom(seed: seed)
            var spilled = SpilledBytes()
            var picture = [UInt8?](repeating: nil, count: 2000)
            for _ in 0..<60 {
                let start = Int(random.next() % 1900)
                let end = min(2000, start + 1 + Int(random.next() % 300))
                if random.next() % 3 > 0 {
                    let bytes = random.bytes(end - start)
                    bytes.withUnsafeBytes { spilled.put($0, at: Int64(start)) }
                    for place in start..<end { picture[place] = bytes[place - start] }
                } else {
                    spilled.remove(Int64(start)..<Int64(end))
                    for place in start..<end { picture[place] = nil }
                }
            }
            var copy = [UInt8](repeating: 0, count: 2000)
            let here = copy.withUnsafeMutableBytes { spilled.copy(into: $0, at: 0) }
            #expect(here.byteCount == Int64(picture.count { $0 != nil }), "seed \(seed)")
            #expect(spilled.byteCount == here.byteCount, "seed \(seed)")
            #expect(here.runs.allSatisfy { run in run.allSatisfy { picture[Int($0)] == copy[Int($0)] } })
        }
    }
}
