import Testing

@testable import CacheCore

struct ArrayConcurrencyTests {
    @Test(.timeLimit(.minutes(1)))
    func resultsHaveTheOrderOfTheElementsAndFewRunAtATime() async {
        let running = AsyncCondition((now: 0, most: 0))
        let results = await Array(0..<50).mapConcurrently(atMost: 4) { number in
            running.change { running in
                running.now += 1
                running.most = max(running.most, running.now)
            }
            // Later elements end first.
            for _ in 0..<(number % 7) { await Task.yield() }
            running.change { $0.now -= 1 }
            return "\(number)"
        }
        #expect(results == (0..<50).map(String.init))
        #expect((1...4).contains(running.state.most))
        #expect(await [Int]().mapConcurrently(atMost: 0) { $0 } == [])
    }
}
