import CacheCore
import Synchronization
import Testing

@testable import LarderServer

@Suite struct SlewedClockTests {
    private static let second: Int64 = 1_000_000_000

    @Test("A clock step of a day makes no timestamp jump")
    func aDayForwardsOrBackMakesNothingJump() {
        let clocks = Mutex((wall: 1_780_000_000 * Self.second, uptime: 5000 * Self.second))
        let steady = SlewedClock { clocks.withLock { $0 } }
        let start = steady.now()
        func advance(seconds: Int64, step: Int64 = 0) -> Duration {
            clocks.withLock { $0 = ($0.wall + (seconds + step) * Self.second, $0.uptime + seconds * Self.second) }
            return steady.now().since(start)
        }

        #expect(start == Timestamp(seconds: 1_780_000_000))
        #expect(advance(seconds: 10) == .seconds(10))
        #expect(advance(seconds: 1, step: 86_400) <= .seconds(12 + 60))
        #expect(advance(seconds: 10) <= .seconds(32 + 60))
        let ahead = advance(seconds: 0)
        #expect(advance(seconds: 1, step: -2 * 86_400) > ahead)
        #expect(advance(seconds: 20) == ahead + .seconds(10.5))
    }

    @Test("Starts at the time of the machine")
    func itIsTheMachinesTime() {
        let (before, steady) = (SystemWallClock().now(), SlewedClock())

        #expect((0...60_000).contains(steady.now().since(before).wholeMilliseconds))
    }
}
