import CacheCore
import CacheTestKit
import Foundation
import Synchronization
import Testing

@testable import CacheStore

/// The catalog opens another connection while the process has no free file descriptor.
@Suite struct CatalogShortageTests {
    @Test("Descriptor exhaustion on opening the catalog is reported as overloaded and recovers")
    func aCatalogThatCannotBeOpenedForWantOfDescriptorsIsOverloadedAndWellAgainLater() async {
        await #expect(processExitsWith: .success) {
            let testStore = try TestStore()
            let catalog = testStore.store.catalog
            let (isHeld, hold) = AsyncStream<Void>.makeStream()
            let gate = DispatchSemaphore(value: 0)
            let holder = Task {
                try await catalog.read { _ in
                    hold.yield()
                    gate.wait()
                }
            }
            _ = await isHeld.first { true }
            for spared in 0..<2 {
                let spent = try Self.spendDescriptors(sparing: spared)
                let error = await #expect(throws: CacheError.self) { try await catalog.jobCounts() }
                #expect(error?.code == .overloaded && error?.message.contains("too many files are open") == true)
                for descriptor in spent { close(descriptor) }
            }
            #expect(try await catalog.jobCounts().isEmpty)
            gate.signal()
            try await holder.value
        }
    }

    @Test("Other failures to open the catalog are reported as internal")
    func aCatalogThatCannotBeOpenedForAnotherReasonIsNot() throws {
        let directory = try TemporaryDirectory()
        let error = #expect(throws: CacheError.self) {
            try Catalog(path: directory.path("none/catalog.sqlite"), secrets: try TestStore().store.catalog.secrets)
        }
        #expect(error?.code == .internal)
    }

    /// Opens file descriptors up to the process limit and leaves `count` free.
    private static func spendDescriptors(sparing count: Int) throws -> [Int32] {
        var limit = rlimit()
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        getrlimit(resource, &limit)
        limit.rlim_cur = min(limit.rlim_cur, 256)
        setrlimit(resource, &limit)
        var spent: [Int32] = []
        while case let descriptor = open("/", O_RDONLY), descriptor >= 0 { spent.append(descriptor) }
        try #require(errno == EMFILE && spent.count > count)
        for _ in 0..<count { close(spent.removeLast()) }
        return spent
    }
}
