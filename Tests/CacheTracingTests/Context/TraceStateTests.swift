import CacheTracing
import Testing

@Suite struct TraceStateTests {
    @Test(
        "A valid tracestate is passed on without blanks around its entries",
        arguments: [
            (["rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"], "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"),
            (["a=1", "b=2,c=3"], "a=1,b=2,c=3"), ([" a=1 ,\tb=2\t"], "a=1,b=2"), (["a= 1 "], "a= 1"), ([""], ""),
            ([], ""),
            ([",a=1, ,,b=2,"], "a=1,b=2"), (["0a=1"], "0a=1"), (["tenant@system=1"], "tenant@system=1"),
            (["a_-*/@9=!~"], "a_-*/@9=!~"), (["a=1,b=2,a=3"], "a=1,b=2"),
        ] as [([String], String)])
    func passesOn(fields: [String], expected: String) {
        #expect(TraceState(fields: fields).text == expected)
    }

    @Test(
        "A tracestate with an invalid entry is discarded as a whole",
        arguments: [
            "a", "a=", "=1", "a=1,b", "A=1", "a b=1", "a =1", "_a=1", "@a=1", "a.b=1", "a=1=2", "a=\u{1}", "a=é",
            "a=b\tc",
            "é=1",
        ])
    func discards(field: String) {
        #expect(TraceState(fields: ["good=1," + field]).text == "")
    }

    @Test("32 entries are accepted, and 33 are not")
    func limitsTheNumberOfEntries() {
        let entries = (0..<33).map { "k\($0)=\($0)" }

        #expect(TraceState(fields: [entries.prefix(32).joined(separator: ",")]).text.split(separator: ",").count == 32)
        #expect(TraceState(fields: [entries.joined(separator: ",")]).text == "")
        #expect(TraceState(fields: entries).text == "")
    }

    @Test("Keys and values of 256 bytes are accepted, and longer ones are not")
    func limitsTheSizes() {
        let long = String(repeating: "a", count: 256)

        #expect(TraceState(fields: ["\(long)=1"]).text == "\(long)=1")
        #expect(TraceState(fields: ["\(long)a=1"]).text == "")
        #expect(TraceState(fields: ["k=\(long)"]).text == "k=\(long)")
        #expect(TraceState(fields: ["k=\(long)a"]).text == "")
    }

    @Test("Above 512 bytes, entries of more than 128 bytes are removed first, then the last ones")
    func truncatesWholeEntries() {
        let large = "large=" + String(repeating: "x", count: 130)
        let small = (0..<10).map { "k\($0)=" + String(repeating: "y", count: 46) }

        let text = TraceState(fields: [([small[0], large] + small[1...]).joined(separator: ",")]).text

        #expect(text == small.joined(separator: ","))
        #expect(text.utf8.count == 10 * 49 + 9)
        let cut = TraceState(fields: [(small + ["k10=" + String(repeating: "y", count: 46)]).joined(separator: ",")])
            .text
        #expect(cut == text)
    }
}
