import CacheCore
import ReaderAccess
import Testing

struct IssuedTokensTests {
    private let now = Timestamp(seconds: 1_800_000_000)

    private func digests(_ range: Range<Int>) -> Set<TokenDigest> { Set(range.map { TokenDigest(of: "\($0)") }) }

    @Test("A token that returns is present again, and its removal begins anew")
    func returning() {
        let token = TokenDigest(of: "a")
        var tokens = IssuedTokens()
        tokens.add([token])
        tokens.update(present: [], at: now)
        tokens.update(present: [token], at: now + .seconds(80 * 86_400))
        tokens.update(present: [], at: now + .seconds(85 * 86_400))
        #expect(tokens.contains(token, at: now + .seconds(170 * 86_400)))
        #expect(!tokens.contains(token, at: now + .seconds(175 * 86_400)))
    }

    @Test("The number is bounded: those that were removed first are dropped first")
    func bound() {
        var tokens = IssuedTokens()
        for batch in 0..<5 {
            tokens.add(digests((batch * 5000)..<((batch + 1) * 5000)))
            tokens.update(present: [], at: now + .seconds(batch))
        }
        #expect(tokens.text.split(separator: "\n").count == IssuedTokens.capacity)
        #expect(digests(0..<5000).allSatisfy { !tokens.contains($0, at: now) })
        #expect(digests(5000..<25_000).allSatisfy { tokens.contains($0, at: now) })
        let present = digests(30_000..<40_002)
        tokens.update(present: present, at: now + .seconds(9))
        #expect(present.allSatisfy { tokens.contains($0, at: now) })
        #expect(tokens.text.split(separator: "\n").count == IssuedTokens.capacity)
    }

    @Test("The stored form is read again; damaged lines are skipped")
    func storedForm() {
        var tokens = IssuedTokens()
        tokens.add([TokenDigest(of: "removed")])
        tokens.update(present: [TokenDigest(of: "present")], at: now)
        #expect(IssuedTokens(text: tokens.text) == tokens)
        #expect(IssuedTokens(text: "x\n\n" + tokens.text + "\nabc 1") == tokens)
        #expect(IssuedTokens(text: "") == IssuedTokens())
    }
}
