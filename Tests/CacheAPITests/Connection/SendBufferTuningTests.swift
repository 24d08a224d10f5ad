import CacheEngine
import CacheTestKit
import NIOCore
import NIOPosix
import Testing

@testable import CacheAPI

@Suite struct SendBufferTuningTests {
    private static let mebi = 1 << 20

    @Test("The send buffer budget is a thirty-second of memory")
    func roomIsAThirtySecondOfMemory() {
        let room = SendBufferBudget(largest: 4 * Self.mebi, own: 4 * Self.mebi, memory: 512 * Self.mebi)
        #expect(room.bytes == 4 * Self.mebi)
        #expect(room.places.limit == 2)
    }

    @Test("There is no send buffer budget if the kernel default is as large")
    func thereIsNoneWhereTheKernelsOwnBuffersAreAsLarge() {
        #expect(SendBufferBudget(largest: 212_992, own: 4 * Self.mebi, memory: 1 << 40).places.limit == 0)
    }

    @Test("Large responses from disk get a large send buffer while the budget lasts")
    func largeAnswersFromDiskHaveALargeBufferWhileThereIsRoom() async throws {
        let upstream = try LoopbackUpstream()
        // One permit, with a buffer size that every kernel grants and that is no default.
        let room = SendBufferBudget(largest: 150_000, own: 1, memory: 32 * 300_000)
        #expect(room.places.limit == 1)
        let first = try await connection(to: upstream)
        let second = try await connection(to: upstream)
        let own = try await bytes(of: first, in: room) { buffer, channel in
            buffer.fit(toBytesOnDisk: nil, on: channel)
            buffer.fit(toBytesOnDisk: SendBufferBudget.leastBody - 1, on: channel)
        }
        let enlarged = try await bytes(of: first, in: room) {
            $0.fit(toBytesOnDisk: SendBufferBudget.leastBody, on: $1)
        }
        #expect(own != 300_000 && enlarged == 300_000)

        #expect(room.places.figures.active == 0, "a released tuning must return its permit")
        let place = room.places.take()
        let refused = try await bytes(of: second, in: room) { $0.fit(toBytesOnDisk: .max, on: $1) }
        #expect(refused == own)
        withExtendedLifetime(place) {}
        try await first.close()
        try await second.close()
    }

    private func connection(to upstream: LoopbackUpstream) async throws -> any Channel {
        try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .connect(host: "127.0.0.1", port: upstream.port).get()
    }

    /// The send buffer size of the connection after `step`.
    private func bytes(
        of channel: any Channel, in room: SendBufferBudget,
        after step: @escaping @Sendable (SendBufferTuning, any Channel) -> Void
    ) async throws -> Int {
        try await channel.eventLoop.submit {
            step(SendBufferTuning(in: room), channel)
            return Int(try channel.syncOptions?.getOption(.socketOption(.so_sndbuf)) ?? 0)
        }.get()
    }
}
