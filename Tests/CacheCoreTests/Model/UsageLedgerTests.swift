import CacheCore
import TestChance
import Testing

@Suite("The account of a limited total")
struct UsageLedgerTests {
    private let limits = UsageLedger<String>.Limits(total: 64, share: 16, reserve: 16)

    @Test("One holder gets no more than its share")
    func limitsOneHolder() {
        var ledger = UsageLedger<String>()
        #expect(ledger.claim(16, by: "a", isPrivileged: false, of: limits) == nil)
        #expect(ledger.claim(1, by: "a", isPrivileged: false, of: limits) == .share)
        #expect(ledger.claim(1, by: "b", isPrivileged: false, of: limits) == nil)
        #expect(ledger.used == 17)
    }

    @Test("The reserve is left to privileged holders")
    func keepsTheReserve() {
        var ledger = UsageLedger<String>()
        for holder in ["a", "b", "c"] { #expect(ledger.claim(16, by: holder, isPrivileged: false, of: limits) == nil) }
        #expect(ledger.claim(1, by: "d", isPrivileged: false, of: limits) == .total)
        #expect(ledger.claim(16, by: "admin", isPrivileged: true, of: limits) == nil)
        #expect(ledger.claim(1, by: "admin2", isPrivileged: true, of: limits) == .total)
    }

    @Test("Amounts of privileged holders do not reduce the part of the others below the total")
    func privilegedAmountsComeFromTheReserveFirst() {
        var ledger = UsageLedger<String>()
        #expect(ledger.claim(16, by: "admin", isPrivileged: true, of: limits) == nil)
        for holder in ["a", "b", "c"] { #expect(ledger.claim(16, by: holder, isPrivileged: false, of: limits) == nil) }
        #expect(ledger.used == 64)
    }

    @Test("A client without a token is limited by the total only")
    func withoutATokenThereIsNoShare() {
        var ledger = UsageLedger<String>()
        #expect(ledger.claim(64, by: nil, isPrivileged: true, of: limits) == nil)
        #expect(ledger.claim(1, by: nil, isPrivileged: true, of: limits) == .total)
    }

    @Test("Random claims never exceed a limit, and returned amounts are free again", .timeLimit(.minutes(1)))
    func randomClaims() {
        var random = SeededRandom.announced().random
        var ledger = UsageLedger<String>()
        var held: [(holder: String, isPrivileged: Bool, amount: Int)] = []
        for _ in 0..<10_000 {
            if Bool.random(using: &random), let index = held.indices.randomElement(using: &random) {
                let entry = held.remove(at: index)
                ledger.giveBack(entry.amount, by: entry.holder, isPrivileged: entry.isPrivileged)
            } else {
                let number = Int.random(in: 0..<8, using: &random)
                let entry = (
                    holder: "\(number)", isPrivileged: number < 2, amount: Int.random(in: 1...8, using: &random)
                )
                if ledger.claim(entry.amount, by: entry.holder, isPrivileged: entry.isPrivileged, of: limits) == nil {
                    held.append(entry)
                }
            }
            #expect(ledger.used == held.reduce(0) { $0 + $1.amount } && ledger.used <= limits.total)
            #expect(held.filter { !$0.isPrivileged }.reduce(0) { $0 + $1.amount } <= limits.total - limits.reserve)
            for holder in Set(held.map(\.holder)) {
                #expect(held.filter { $0.holder == holder }.reduce(0) { $0 + $1.amount } <= limits.share)
            }
        }
    }
}
