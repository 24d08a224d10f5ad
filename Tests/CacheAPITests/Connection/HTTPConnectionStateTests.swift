import NIOCore
import TestChance
import Testing

@testable import CacheAPI

/// The state machine of a connection. ``ConnectionModel`` explains the words.
@Suite struct HTTPConnectionStateTests {
    /// A sequence of events with the actions and the phase that follow.
    struct Row: Sendable, CustomTestStringConvertible {
        var events: String
        var actions: String

        init(_ events: String, _ actions: String) { (self.events, self.actions) = (events, actions) }

        var testDescription: String { events }
    }

    @Test(
        "Requests are answered one after the other",
        arguments: [
            Row("bytes head end <head <part <end sent", "head end <head <part <end → idle"),
            Row("bytes post part end <head <end sent", "post part end <head <end → idle"),
            Row("bytes head end <head <end", "head end <head <end → complete/written"),
            Row(
                "head end head end head end <head <end sent", "head end <head <end head end → complete/owed"),
            Row("head end head end <head <end sent <head <end sent", "head end <head <end head end <head <end → idle"),
            Row("head end head end bad <head <end sent", "head end <head <end head end → complete/owed"),
            Row("head end bad <head <end sent", "head end <head <end error → refusing"),
            Row("head end <head <end bytes 20", "head end <head <end → complete/written"),
            Row("head end bytes <head <end sent 74", "head end <head <end → idle"),
        ])
    func requests(row: Row) { #expect(ConnectionModel.run(row.events) == row.actions) }

    @Test(
        "A response may begin before its request is complete",
        arguments: [
            Row("post <head <end sent", "post <head <end → body/sent"),
            Row("post <head <end sent part end", "post <head <end part end → idle"),
            Row("post <head <part end <end sent", "post <head <part end <end → idle"),
            Row("post <head bad", "post <head close → closed"),
            Row("post <head <end bad", "post <head <end → body/written"),
            Row("post <head <end bad sent", "post <head <end close → closed"),
            Row("post <head <end sent bad", "post <head <end close → closed"),
            Row("post bad", "post error → refusing"),
        ])
    func earlyResponses(row: Row) { #expect(ConnectionModel.run(row.events) == row.actions) }

    @Test(
        "A request has one response",
        arguments: [
            Row("<head <end", "- - → new"), Row("head end <head <head", "head end <head - → complete/writing"),
            Row("head end <head <end <end <head", "head end <head <end - - → complete/written"),
            Row("head end <head <end sent <head <part <end", "head end <head <end - - - → idle"),
            Row("post <head <end sent <head", "post <head <end - → body/sent"),
            Row("bad <head", "error - → refusing"), Row("post bad <head <end sent", "post error - - → refusing"),
            Row("post <head bad <part <end", "post <head close - - → closed"),
        ])
    func oneResponse(row: Row) { #expect(ConnectionModel.run(row.events) == row.actions) }

    @Test(
        "The last response closes the output, and further input is discarded until the client closes its side",
        arguments: [
            Row("last end <head <end sent", "head end <head <end shut → lingering"),
            Row("old end <head <end sent", "head end <head <end shut → lingering"),
            Row("head end <bye <end sent", "head end <bye <end shut → lingering"),
            Row("head end <open <end sent", "head end <open <end → idle"),
            Row("last end head end bad <head <end sent", "head end <head <end shut → lingering"),
            Row("head end last end head end <head <end sent", "head end <head <end head end → complete/owed"),
            Row(
                "head end last end head end <head <end sent <head <end sent",
                "head end <head <end head end <head <end shut → lingering"),
            Row("head end <bye head end <end sent", "head end <bye <end shut → lingering"),
            Row("post <bye <end sent", "post <bye <end shut → lingering"),
            Row("post <bye <end sent part bad end head end", "post <bye <end shut → lingering"),
            Row("last end <head <end sent head end bad bytes <head", "head end <head <end shut - → lingering"),
            Row("last end <head <end sent eof", "head end <head <end shut eof → lingering"),
            Row("last end eof <head <end sent", "head end <head <end shut eof → lingering"),
            Row("last end <head <end sent 40 part 35", "head end <head <end shut close → closed"),
            Row("last end <head <end sent quiesce", "head end <head <end shut close → closed"),
            Row("last end <head <end sent displace", "head end <head <end shut close → closed"),
            Row("last end quiesce <head <end sent", "head end <head <end close → closed"),
            Row("last end <head <end sent bypass", "head end <head <end shut - → lingering"),
        ])
    func lastResponses(row: Row) { #expect(ConnectionModel.run(row.events) == row.actions) }

    @Test(
        "A body that the end of the connection ends is cut by a reset, other bodies by a close",
        arguments: [
            Row("old end <open <end sent", "head end <open <end shut → lingering"),
            Row("old end <open <part displace", "head end <open <part reset → closed"),
            Row("old end <open <part full 600", "head end <open <part reset → closed"),
            Row("old end <open <part <end displace", "head end <open <part <end close → closed"),
            Row("old end <head <part displace", "head end <head <part close → closed"),
            Row("head end <open <part displace", "head end <open <part close → closed"),
            Row("old end displace", "head end close → closed"),
        ])
    func cutBodies(row: Row) { #expect(ConnectionModel.run(row.events) == row.actions) }

    @Test(
        "Requests arrive in time, or the connection ends",
        arguments: [
            Row("14", "→ new"), Row("15", "error → refusing"), Row("bytes 15", "error → refusing"),
            Row("15 15", "error close → closed"), Row("15 head end", "error → refusing"),
            Row("head end <head <end sent 74", "head end <head <end → idle"),
            Row("head end <head <end sent 75", "head end <head <end close → closed"),
            Row("head end <head <end sent bytes 14", "head end <head <end → head"),
            Row("head end <head <end sent 70 bytes 15", "head end <head <end error → refusing"),
            Row("head end <head <end sent bytes 10 bytes 5", "head end <head <end error → refusing"),
            Row("post 9", "post → body/owed"), Row("post 10", "post error → refusing"),
            Row("post more 10", "post part → body/owed"), Row("post more 20", "post part error → refusing"),
            Row("post more 10 part 10", "post part part error → refusing"),
            Row("post <head <end sent 10", "post <head <end close → closed"),
            Row("post <head 74", "post <head → body/writing"), Row("post <head 75", "post <head close → closed"),
            Row("post <head 20 part 74", "post <head part → body/writing"),
        ])
    func deadlines(row: Row) { #expect(ConnectionModel.run(row.events) == row.actions) }

    @Test("A body in lines ends after 60 seconds without a byte, however slow it is")
    func linesMayBeSlow() {
        let start = NIODeadline.now()
        var window = HTTPConnectionState.BodyWindow.lines(at: start)
        #expect(window.end == start + .seconds(60) && !window.hasRate)
        window.arrived(1, at: start + .seconds(59))
        #expect(window.end == start + .seconds(119))
    }

    @Test(
        "A client that accepts no bytes is disconnected, a slow response is not",
        arguments: [
            Row("head end 10000", "head end → complete/owed"),
            Row("head end <head <part 10000 <end sent", "head end <head <part <end → idle"),
            Row("head end <head <part full 599", "head end <head <part → complete/writing"),
            Row("head end <head <part full 600", "head end <head <part close → closed"),
            Row("head end <head full 400 <part 299", "head end <head <part → complete/writing"),
            Row("head end <head <end full 600", "head end <head <end close → closed"),
            Row("post <head <end full 600", "post <head <end close → closed"),
            Row("bypass full 599", "→ bypassed"), Row("bypass full 600", "close → closed"),
        ])
    func stalledClients(row: Row) { #expect(ConnectionModel.run(row.events) == row.actions) }

    @Test(
        "A client that sends no more gets its responses, unless it is gone",
        arguments: [
            Row("eof", "eof → new"), Row("head end <head <end sent eof", "head end <head <end eof → idle"),
            Row("head end eof 1 <head <end sent", "head end <head <end eof → idle"),
            Row("head end eof 2", "head end gone → complete/owed"),
            Row("head end eof 1 <head 1 <part 1", "head end <head <part → complete/writing"),
            Row("head end <head <part full eof 20", "head end <head <part → complete/writing"),
            Row("head end <head <part full eof 20 sent 2", "head end <head <part gone → complete/writing"),
            Row("head end head end eof <head <end sent", "head end <head <end head end → complete/owed"),
            Row(
                "head end head end eof <head <end sent <head <end sent",
                "head end <head <end head end <head <end eof → idle"),
            Row("post eof", "post eof! → body/owed"), Row("post <head eof", "post <head → body/writing"),
            Row("post <head eof <end sent", "post <head <end eof → body/sent"),
            Row("post <head <end sent eof", "post <head <end eof → body/sent"),
            Row("bad eof", "error eof → refusing"), Row("bypass eof 1 passed", "eof → idle"),
            Row("eof bypass", "eof - → new"),
            Row("head end eof <head <end sent bypass", "head end <head <end eof - → idle"),
        ])
    func halfClosedClients(row: Row) { #expect(ConnectionModel.run(row.events) == row.actions) }

    @Test(
        "A shutdown ends the connection after its responses",
        arguments: [
            Row("quiesce 0", "→ new"), Row("quiesce 1", "close → closed"),
            Row("quiesce head end <head <end sent", "head end <head <end close → closed"),
            Row("head end <head <end sent quiesce", "head end <head <end close → closed"),
            Row("head end <head <end sent bytes quiesce", "head end <head <end close → closed"),
            Row("head end quiesce <head <end sent", "head end <head <end close → closed"),
            Row("head end <head quiesce head end <end sent", "head end <head <end head end → complete/owed"),
            Row(
                "head end <head quiesce head end <end sent <head <end sent",
                "head end <head <end head end <head <end close → closed"),
            Row("head end quiesce <head head end <end sent", "head end <head <end close → closed"),
            Row("post quiesce <head <end sent", "post <head <end → body/sent"),
            Row("post quiesce <head <end sent end", "post <head <end end close → closed"),
            Row("bad quiesce", "error → refusing"), Row("bypass quiesce passed", "close → closed"),
            Row("quiesce bypass", "- → new"),
            Row("head end eof quiesce <head <end sent", "head end <head <end close → closed"),
        ])
    func shutdown(row: Row) { #expect(ConnectionModel.run(row.events) == row.actions) }

    @Test(
        "After a shutdown the last response says so",
        arguments: [
            ("head end <head", false), ("head end quiesce <head", true), ("quiesce head end <head", true),
            ("head end quiesce head end <head", false), ("head end head end quiesce <head <end sent <head", true),
            ("head end eof quiesce <head", true), ("post quiesce <head", false), ("post end quiesce <head", true),
        ])
    func lastResponseOfShutdown(script: String, isLast: Bool) throws {
        #expect(try #require(ConnectionModel(after: script).framing).isLast == isLast)
    }

    @Test(
        "An unused connection that loses its permit gets an error, others are closed",
        arguments: [
            Row("displace", "error → refusing"), Row("bytes displace", "error → refusing"),
            Row("head end <head <end sent displace", "head end <head <end close → closed"),
            Row("head end <head <end sent bytes displace", "head end <head <end close → closed"),
            Row("bad displace", "error → refusing"), Row("inactive displace", "→ closed"),
        ])
    func displacement(row: Row) { #expect(ConnectionModel.run(row.events) == row.actions) }

    @Test(
        "Prepared responses bypass an idle connection only",
        arguments: [
            Row("bypass passed", "→ idle"), Row("bypass bypass", "- → bypassed"),
            Row("head bypass", "head - → body/owed"),
            Row("bypass head end", "→ bypassed"), Row("bypass head end passed", "head end → complete/owed"),
            Row("bypass bad passed", "error → refusing"), Row("bypass passed 75", "close → closed"),
            Row("pieces <head <end sent", "<head <end → idle"), Row("bad bypass", "error - → refusing"),
            Row("head end <head <end bypass", "head end <head <end - → complete/written"),
        ])
    func preparedResponses(row: Row) { #expect(ConnectionModel.run(row.events) == row.actions) }

    @Test(
        "After 16 responses within a read, other connections come first",
        arguments: [
            Row("", "→ paused"), Row("turn", "→ idle"), Row("bypass", "- → paused"), Row("turn bypass", "→ bypassed"),
            Row("head end", "→ paused"), Row("head end turn", "head end → complete/owed"),
            Row("bad turn", "error → refusing"), Row("eof turn", "eof → idle"),
            Row("head end eof turn <head <end sent", "head end <head <end eof → idle"),
            Row("quiesce turn", "close → closed"), Row("displace turn", "close → closed"), Row("75", "close → closed"),
            Row("head end quiesce turn", "head end → complete/owed"), Row("inactive turn", "→ closed"),
            Row("turn " + bypasses(15), "→ idle"), Row("turn " + bypasses(16), "→ paused"),
            Row("turn " + bypasses(15) + "read " + bypasses(15), "→ idle"),
        ])
    func pauses(row: Row) { #expect(ConnectionModel.run(Self.bypasses(16) + row.events) == row.actions) }

    private static func bypasses(_ count: Int) -> String { String(repeating: "bypass passed ", count: count) }
}
