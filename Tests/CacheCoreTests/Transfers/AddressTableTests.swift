import Testing

@testable import CacheCore

@Suite struct AddressTableTests {
    private let name = "media.example:443"
    private let silent = CacheError(.upstreamTimedOut(.connect), "The connection was not established.")
    private let reset = CacheError(.upstreamProtocol, "The connection failed.")

    /// A table with a resolved name.
    private func table(_ addresses: String..., at now: Duration = .zero) -> AddressTable {
        var table = AddressTable()
        table.resolved(name, to: addresses, at: now)
        return table
    }

    private func order(_ table: inout AddressTable, at now: Duration = .zero) -> [String]? {
        table.order(of: name, notOlderThan: .seconds(30), at: now)
    }

    private func isFailing(_ table: inout AddressTable, at now: Duration) -> Bool { table.isFailing(name, at: now) }

    private func dueProbes(_ table: inout AddressTable, at now: Duration) -> [String] {
        table.dueProbes(at: now).map(\.address)
    }

    @Test("A name is resolved before its first connection, after its maximum age and after a failure")
    func aNameIsResolvedAgain() {
        var table = AddressTable()
        #expect(order(&table) == nil)
        table.resolved(name, to: ["192.0.2.1"], at: .zero)
        #expect(order(&table, at: .seconds(30)) == ["192.0.2.1"])
        #expect(order(&table, at: .seconds(31)) == nil)
        table.resolved(name, to: ["192.0.2.1"], at: .seconds(31))
        table.failed(name, "192.0.2.1", silent, at: .seconds(32))
        #expect(order(&table, at: .seconds(32)) == nil)
    }

    @Test("New connections are spread over the healthy addresses")
    func connectionsAreSpread() {
        var table = table("192.0.2.1", "192.0.2.2", "192.0.2.3")
        let firsts = (0..<6).compactMap { _ in order(&table)?.first }
        #expect(firsts == ["192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.1", "192.0.2.2", "192.0.2.3"])
    }

    @Test("The family that the resolver prefers is tried first, and the other family next")
    func familiesKeepTheirOrder() {
        var table = table("2001:db8::1", "192.0.2.1", "2001:db8::2")
        #expect(order(&table) == ["2001:db8::1", "2001:db8::2", "192.0.2.1"])
        #expect(order(&table) == ["2001:db8::2", "2001:db8::1", "192.0.2.1"])
    }

    @Test("A suspect address is tried last until it answers, also after the name was resolved again")
    func aSuspectAddressIsTriedLast() {
        var table = table("192.0.2.1", "192.0.2.2")
        table.failed(name, "192.0.2.1", silent, at: .seconds(1))
        table.resolved(name, to: ["192.0.2.1", "192.0.2.2"], at: .seconds(2))
        for _ in 0..<3 { #expect(order(&table, at: .seconds(3)) == ["192.0.2.2", "192.0.2.1"]) }
        #expect(isFailing(&table, at: .seconds(3)) == false)
        table.failed(name, "192.0.2.2", silent, at: .seconds(4))
        #expect(isFailing(&table, at: .seconds(4)) == true)
        table.succeeded(name, "192.0.2.1", at: .seconds(5))
        #expect(isFailing(&table, at: .seconds(5)) == false)
        #expect(table.addresses(of: name).map(\.isSuspect) == [false, true])
    }

    @Test("A dropped address loses its state, and a new one does not get all connections")
    func aMovedNameLosesItsOldAddress() {
        var table = table("192.0.2.1", "192.0.2.2")
        for _ in 0..<10 { _ = order(&table) }
        table.resolved(name, to: ["192.0.2.2", "192.0.2.9"], at: .seconds(1))
        #expect(table.addresses(of: name).map(\.text) == ["192.0.2.2", "192.0.2.9"])
        let firsts = (0..<4).compactMap { _ in order(&table, at: .seconds(1))?.first }
        #expect(firsts.count { $0 == "192.0.2.9" } == 2)
    }

    @Test("Connections that are older than a timeout or a dead connection are not reused")
    func oldConnectionsAreNotReused() {
        var table = AddressTable()
        #expect(table.mayReuse(name, "192.0.2.1", opened: .zero))
        table.distrust(name, "192.0.2.1", at: .seconds(5))
        #expect(!table.mayReuse(name, "192.0.2.1", opened: .seconds(4)))
        #expect(table.mayReuse(name, "192.0.2.1", opened: .seconds(6)))
        #expect(table.mayReuse(name, "192.0.2.2", opened: .seconds(4)))
        #expect(isFailing(&table, at: .seconds(6)) == false, "a dead connection says nothing about new ones")
        table.failed(name, "192.0.2.1", silent, at: .seconds(7))
        #expect(!table.mayReuse(name, "192.0.2.1", opened: .seconds(6)))
    }

    @Test("Connections to a suspect address are not reused while another address is healthy")
    func connectionsToASuspectAddressAreNotReused() {
        var table = table("192.0.2.1", "192.0.2.2")
        table.failed(name, "192.0.2.1", reset, at: .seconds(1))
        #expect(!table.mayReuse(name, "192.0.2.1", opened: .seconds(2)))
        table.failed(name, "192.0.2.2", reset, at: .seconds(3))
        #expect(table.mayReuse(name, "192.0.2.1", opened: .seconds(2)))
    }

    @Test("A suspect address with an alternative is probed after pauses that double, one probe at a time")
    func probesFollowPauses() {
        var table = AddressTable()
        table.failed(name, "192.0.2.1", silent, at: .zero)
        #expect(table.nextProbe(at: .zero) == nil, "there is no alternative yet")
        #expect(isFailing(&table, at: .zero) == true)
        #expect(table.nextProbe(at: .zero) == .seconds(1))
        #expect(dueProbes(&table, at: .milliseconds(999)) == [])
        #expect(dueProbes(&table, at: .seconds(1)) == ["192.0.2.1"])
        #expect(table.nextProbe(at: .seconds(1)) == nil)
        #expect(dueProbes(&table, at: .seconds(1)) == [])
        table.failed(name, "192.0.2.1", silent, isProbe: true, at: .seconds(2))
        #expect(table.nextProbe(at: .seconds(2)) == .seconds(4))
        #expect(dueProbes(&table, at: .seconds(4)) == ["192.0.2.1"])
        table.succeeded(name, "192.0.2.1", at: .seconds(5))
        #expect(table.nextProbe(at: .seconds(5)) == nil)
        #expect(isFailing(&table, at: .seconds(5)) == false)
    }

    @Test("A server without requests is no longer probed")
    func anUnusedServerIsNotProbed() {
        var table = table("192.0.2.1", "192.0.2.2")
        table.failed(name, "192.0.2.1", silent, at: .zero)
        #expect(table.nextProbe(at: AddressTable.probedPeriod) == nil)
        table.used(name, at: AddressTable.probedPeriod)
        #expect(table.nextProbe(at: AddressTable.probedPeriod) != nil)
    }

    @Test("The number of servers is limited, and the oldest use is dropped first")
    func theNumberOfServersIsLimited() {
        var table = AddressTable(limit: 4)
        for number in 0..<5 { table.failed("host\(number):80", "192.0.2.1", silent, at: .seconds(number)) }
        #expect(table.addresses(of: "host0:80").isEmpty)
        #expect((1..<5).allSatisfy { !table.addresses(of: "host\($0):80").isEmpty })
    }
}
