import CacheCore
import Testing

@Suite struct WeightedMembersTests {
    @Test(
        "A type is preferred if the field names it with no lower weight",
        arguments: [
            (["text/csv"], true), (["application/json, text/csv"], true), (["text/csv;q=0"], false), ([], false),
            (["text/csv;q=0.5, application/json"], false), (["text/csv; Q=0.5", "application/json;q=0.4"], true),
            (["*/*"], false), (["text/*"], false), (["text/csv;q=0.5, */*"], false),
            (["text/csv;header=present, */*;q=0.1"], true),
            (["TEXT/CSV"], true), (["text/csv;q=x"], false), (["text/csv;q=0.3,application/*;q=0.4"], false),
            (["text/csv;q=0.3,application/*;q=0.4,application/json;q=0.1"], true),
        ])
    func preferences(values: [String], isPreferred: Bool) {
        #expect(WeightedMembers(values).prefers("text/csv", over: "application/json") == isPreferred)
    }

    @Test("A name has its greatest weight")
    func weights() {
        let members = WeightedMembers(["gzip;q=0.2, br", "gzip;q=0.7;x=1, ,identity;q=0"])
        #expect(members.weight(of: "gzip") == 0.7 && members.weight(of: "br") == 1)
        #expect(members.weight(of: "identity") == 0 && members.weight(of: "deflate") == nil)
    }
}
