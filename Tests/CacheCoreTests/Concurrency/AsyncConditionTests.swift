import Testing

@testable import CacheCore

struct AsyncConditionTests {
    @Test func aWaitEndsWithTheChangeThatMeetsItsCondition() async {
        let count = AsyncCondition(0)
        async let three = count.value { $0 >= 3 ? $0 : nil }
        for _ in 1...5 { count.change { $0 += 1 } }
        #expect(await three >= 3)
        #expect(await count.value { $0 == 5 ? "five" : nil } == "five")
    }

    @Test(.timeLimit(.minutes(1)))
    func conditionsConsumeTheStateInTheOrderOfArrival() async throws {
        let tokens = AsyncCondition(0)
        let (order, arrivals) = (AsyncCondition([Int](), rank: .system), AsyncCondition(Set<Int>(), rank: .system))
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<5 {
                group.addTask {
                    await tokens.value { tokens -> Void? in
                        arrivals.change { $0.insert(number) }
                        guard tokens > 0 else { return nil }
                        tokens -= 1
                        order.change { $0.append(number) }
                        return ()
                    }
                }
                await arrivals.value { $0.contains(number) ? () : nil }
            }
            for given in 1...5 {
                tokens.change { $0 += 1 }
                #expect(order.state == Array(0..<given))
            }
            try await group.waitForAll()
        }
        #expect(tokens.state == 0)
    }

    @Test(.timeLimit(.minutes(1)))
    func aCancelledWaitEndsWithoutAValue() async {
        let event = AsyncEvent()
        let condition = AsyncCondition(false)
        await withTaskGroup(of: Bool.self) { group in
            group.addTask { await condition.valueUnlessCancelled { $0 ? () : nil } == nil }
            group.addTask {
                await event.wait()
                return Task.isCancelled
            }
            group.cancelAll()
            for await isCancelled in group { #expect(isCancelled) }
        }
        // Nobody waits any more.
        condition.change { $0 = true }
        #expect(await condition.valueUnlessCancelled { $0 ? true : nil } == true)
    }

    /// Changes and cancellations at the same time: each wait is resumed once.
    @Test(.timeLimit(.minutes(1)))
    func changesAndCancellationsRace() async {
        for _ in 0..<200 {
            let tokens = AsyncCondition(0)
            let taken = await withTaskGroup(of: Bool.self) { group in
                for _ in 0..<8 {
                    group.addTask {
                        await tokens.valueUnlessCancelled { tokens -> Void? in
                            guard tokens > 0 else { return nil }
                            tokens -= 1
                            return ()
                        } != nil
                    }
                }
                for _ in 0..<4 { tokens.change { $0 += 1 } }
                group.cancelAll()
                return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
            }
            #expect(taken + tokens.state == 4)
        }
    }

    @Test func aClosedEventSuspendsAgain() async throws {
        let event = AsyncEvent()
        event.open()
        await event.wait()
        await event.wait()
        event.close()
        let hasReturned = AsyncCondition(false)
        async let wait: Void = {
            await event.wait()
            hasReturned.change { $0 = true }
        }()
        #expect(!hasReturned.state)
        event.open()
        await wait
        #expect(hasReturned.state)
    }
}
