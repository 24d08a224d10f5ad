import CacheCore
import Dispatch
import Foundation
import Testing

#if DEBUG
    /// The order of locks, which debug builds check.
    @Suite struct LockRankTests {
        @Test("Locks may be taken in the order of their ranks, and again after their release")
        func ordered() {
            let outer = OrderedMutex(.openAsset, 1)
            let inner = OrderedMutex(.leaf, 2)
            for _ in 0..<2 {
                let sum = outer.withLock { outer in outer + inner.withLock { $0 } }
                let value = inner.withLock { $0 }
                #expect(sum == 3 && value == 2)
            }
        }

        @Test("A lock that throws is released")
        func thrown() {
            let outer = OrderedMutex(.openAsset, ())
            let inner = OrderedMutex(.leaf, ())
            do throws(CacheError) {
                try inner.withLock { _ throws(CacheError) in throw CacheError(.internal, "") }
                Issue.record("The error was not rethrown.")
            } catch {
                outer.withLock { _ in }
            }
        }

        @Test("Threads hold ranks of their own")
        func threads() {
            let outer = OrderedMutex(.openAsset, 1)
            let inner = OrderedMutex(.leaf, 2)
            let (isHeld, isDone) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
            Thread.detachNewThread {
                inner.withLock { _ in
                    isHeld.signal()
                    isDone.wait()
                }
            }
            isHeld.wait()
            let value = outer.withLock { $0 }
            isDone.signal()
            #expect(value == 1)
        }

        @Test("A lock of a lower rank under one of a higher rank ends the process")
        func inverted() async {
            await #expect(processExitsWith: .failure) {
                let outer = OrderedMutex(.openAsset, ())
                let inner = OrderedMutex(.spaceLedger, ())
                inner.withLock { _ in outer.withLock { _ in } }
            }
        }

        @Test("Two locks of one rank end the process")
        func equal() async {
            await #expect(processExitsWith: .failure) {
                let one = OrderedMutex(.openAsset, ())
                let other = OrderedMutex(.openAsset, ())
                one.withLock { _ in other.withLock { _ in } }
            }
        }

        @Test("A lock that is tried out of order ends the process")
        func tried() async {
            await #expect(processExitsWith: .failure) {
                let outer = OrderedMutex(.openAsset, ())
                let inner = OrderedMutex(.leaf, ())
                inner.withLock { _ in _ = outer.withLockIfAvailable { _ in } }
            }
        }
    }
#endif

/// docs/internals/locks.md and the declarations of the locks.
@Suite struct LockDocumentTests {
    private static let root = URL(fileURLWithPath: #filePath).appendingPathComponent("../../../..").standardized

    /// The rows of the table: the rank, and the file that declares its lock.
    private static func rows() throws -> [(rank: String, file: String)] {
        let text = try String(contentsOf: root.appendingPathComponent("docs/internals/locks.md"), encoding: .utf8)
        return text.matches(of: /(?m)^\| `(\w+)` \| (?:`(\w+)\.\w+`)?/).map {
            (String($0.1), $0.2.map { "\($0).swift" } ?? "")
        }
    }

    @Test("docs/internals/locks.md has all ranks in their order")
    func ranks() throws {
        #expect(try Self.rows().map(\.rank) == LockRank.allCases.map { "\($0)" })
    }

    @Test("Each lock with a rank of its own is declared where docs/internals/locks.md states it")
    func declarations() throws {
        var found: Set<String> = []
        let sources = Self.root.appendingPathComponent("Sources")
        let files = try #require(FileManager.default.enumerator(at: sources, includingPropertiesForKeys: nil))
        for case let file as URL in files where file.pathExtension == "swift" {
            let text = try String(contentsOf: file, encoding: .utf8)
            for match in text.matches(of: /(?:OrderedMutex(?:<[^(]*>)?|Sharded)\(\s*\.(\w+)/) {
                found.insert("\(match.1) \(file.lastPathComponent)")
            }
        }
        let shared = ["leaf", "system"]
        let declared = found.filter { entry in !shared.contains { entry.hasPrefix("\($0) ") } }
        let documented = try Self.rows().filter { !shared.contains($0.rank) }.map { "\($0.rank) \($0.file)" }
        #expect(declared.sorted() == documented.sorted())
        #expect(shared.allSatisfy { rank in found.contains { $0.hasPrefix("\(rank) ") } })
    }
}
