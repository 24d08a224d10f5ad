import Testing

@testable import CurlUpstream

@Suite(.serialized) struct TLSClosureTests {
    /// Unlike those of real connections: the tests of this process share the table.
    private static let address: UInt = 3

    @Test("A connection whose address is used again affects no other one", arguments: [true, false])
    func addressesAreUsedAgain(isFirstEnded: Bool) {
        let first = TLSClosure.watch(address: Self.address)
        if isFirstEnded { TLSClosure.ended(Self.address) }
        let second = TLSClosure.watch(address: Self.address)
        if !isFirstEnded { TLSClosure.ended(Self.address) }

        #expect(first.end() == isFirstEnded)
        #expect(second.end() == !isFirstEnded)
    }

    @Test("The alert of a connection that is not watched is not counted for an earlier one at its address")
    func unwatchedConnection() {
        let first = TLSClosure.watch(address: Self.address)
        TLSClosure.began(Self.address)
        TLSClosure.ended(Self.address)

        #expect(!first.end())
    }

    @Test("The end of an earlier connection keeps the watch of a later one at its address")
    func endsInAnyOrder() {
        let (first, second) = (TLSClosure.watch(address: Self.address), TLSClosure.watch(address: Self.address))
        _ = first.end()
        TLSClosure.ended(Self.address)

        #expect(second.end())
    }
}
