import CacheCore
import Testing

@Suite struct EntityTagTests {
    @Test(
        "A parsed entity tag is written unchanged",
        arguments: ["\"xyzzy\"", "W/\"xyzzy\"", "\"\"", "\"a,b\\\"", "\"é\""])
    func writesWhatItReads(text: String) {
        #expect(EntityTag(text)?.description == text)
    }

    @Test("Entity tags are compared byte by byte")
    func comparesBytes() throws {
        let (composed, decomposed) = (try #require(EntityTag("\"\u{E9}\"")), try #require(EntityTag("\"e\u{301}\"")))
        #expect(composed != decomposed && !composed.matchesWeakly(decomposed) && !composed.matchesStrongly(decomposed))
        #expect(composed == EntityTag("\"\u{E9}\"") && composed.hashValue == EntityTag("\"\u{E9}\"")?.hashValue)
    }

    @Test(
        "Rejects malformed entity tags",
        arguments: ["", "\"", "xyzzy", "w/\"a\"", "W/", "\"a\"b\"", "\"a b\"", "\"a\u{0}\"", "W/ \"a\""])
    func refusesWhatIsNone(text: String) {
        #expect(EntityTag(text) == nil)
    }

    /// Comparison of entity tags (RFC 9110 §8.8.3.2).
    @Test(
        "Compares as in the table of RFC 9110",
        arguments: [
            ("W/\"1\"", "W/\"1\"", false, true), ("W/\"1\"", "W/\"2\"", false, false),
            ("W/\"1\"", "\"1\"", false, true),
            ("\"1\"", "\"1\"", true, true),
        ])
    func comparesAsTheSpecificationsTable(left: String, right: String, strongly: Bool, weakly: Bool) throws {
        let (left, right) = (try #require(EntityTag(left)), try #require(EntityTag(right)))
        #expect(left.matchesStrongly(right) == strongly)
        #expect(left.matchesWeakly(right) == weakly)
    }
}

@Suite struct AssetIDTests {
    @Test("A parsed asset id is written unchanged")
    func writesWhatItReads() throws {
        let text = "00000000000000010123456789abcdef"
        #expect(try #require(AssetID(text)).description == text)
    }

    @Test(
        "Rejects malformed asset ids",
        arguments: ["", "0123", "0123456789ABCDEF0123456789abcdef", "+123456789abcdef0123456789abcdef"])
    func refusesWhatIsNone(text: String) {
        #expect(AssetID(text) == nil)
    }
}

@Suite struct HeaderListTests {
    @Test("Compares field names case-insensitively")
    func comparesNamesWithoutCase() {
        var headers: HeaderList = ["ETag": "1", "X-A": "2", "etag": "3"]

        #expect(headers["ETAG"] == "1")
        #expect(headers.values("eTag") == ["1", "3"])
        #expect(headers.combined("ETag") == "1, 3")
        #expect(headers.combined("X-B") == nil)
        headers.set("etag", "4")
        #expect(headers == ["X-A": "2", "etag": "4"])
    }
}

@Suite struct FieldTextTests {
    @Test(
        "Recognizes tokens",
        arguments: [
            ("Content-Type", true), ("a!#$%&'*+-.^_`|~9", true), ("", false), ("a b", false), ("a:", false),
            ("é", false),
        ])
    func knowsTokens(text: String, isToken: Bool) {
        #expect(FieldText.isToken(text) == isToken)
    }

    @Test(
        "Recognizes field values",
        arguments: [
            ("", true), ("a b\tc", true), ("é", true), (" a", false), ("a\t", false), ("a\nb", false),
            ("\u{7F}", false),
            (" ", false),
        ])
    func knowsValues(text: String, isValue: Bool) {
        #expect(FieldText.isValue(text) == isValue)
    }
}

@Suite struct TimestampTests {
    @Test("Rounds seconds down")
    func roundsSecondsDown() {
        #expect(Timestamp(milliseconds: 1999).seconds == 1)
        #expect(Timestamp(milliseconds: -1).seconds == -1)
        #expect(Timestamp(milliseconds: -1000).seconds == -1)
        #expect(Timestamp(milliseconds: -1001).seconds == -2)
    }

    @Test("Stays within its range")
    func staysWithinItsRange() {
        #expect(Timestamp(milliseconds: .max) + .seconds(1) == Timestamp(milliseconds: .max))
    }
}
