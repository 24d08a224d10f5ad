import CacheCore
import Testing

@Suite struct JSONTreeDecoderTests {
    private struct Item: Decodable, Equatable {
        var url: String?
        var play: Part?
    }

    private struct Part: Decodable, Equatable {
        var seconds: Double?
        var kinds: [String]?
    }

    private struct Document: Decodable {
        var text: String?
        var flag: Bool?
        var count: Limited<Positive>?
        var seconds: Limited<SecondsAboveZero>?
        var at: Timestamp?
        var level: JobPriority?
        var items: [Item]?
        var few: List<2, Checked<NotEmpty>>?
        var change: Omittable<Int64>
        var other: Omittable<Part>
    }

    private func decode<Value: Decodable>(_ json: JSON, as type: Value.Type = Document.self) throws -> Value {
        try json.decode()
    }

    /// Path and message of the error.
    private func fault<Value: Decodable>(
        _ json: JSON, as type: Value.Type = Document.self, at path: String = ""
    ) -> String? {
        do throws(CacheError) {
            _ = try json.decode(type, at: path)
            return nil
        } catch {
            guard case .invalidField(let path) = error.code else { return error.code.name }
            return "\(path): \(error.message)"
        }
    }

    @Test("A document is decoded with all its members")
    func decodesADocument() throws {
        let document = try decode([
            "text": "é", "flag": .bool(false), "count": 1, "seconds": .number(0.5), "at": "1970-01-01T00:00:01Z",
            "level": "high", "items": [["url": "a"], ["play": ["seconds": 2, "kinds": ["b", "c"]]]], "few": ["d"],
        ])
        #expect(document.text == "é" && document.flag == false && document.count?.value == 1)
        #expect(document.seconds?.duration == .milliseconds(500) && document.at == Timestamp(seconds: 1))
        #expect(document.level == .high && document.few?.values.map(\.text) == ["d"])
        #expect(document.items == [Item(url: "a"), Item(play: Part(seconds: 2, kinds: ["b", "c"]))])
    }

    @Test(
        "An invalid member is an error with its path",
        arguments: [
            (["texts": "a"], "texts: The field is unknown; check its name."),
            (["text": 1], "text: A string is expected here."),
            (["text": "a\u{0}"], "text: The text contains a NUL character."),
            (["text": .null], "text: null is not allowed here; leave the field out."),
            (["flag": "true"], "flag: true or false is expected here."),
            (["count": .number(1.5)], "count: A whole number is expected here."),
            (["count": 0], "count: The number must lie between 1 and 9223372036854775807."),
            (["seconds": "1"], "seconds: A number is expected here."),
            (["seconds": 0], "seconds: The number must lie between 0.001 and 315360000.0."),
            (["at": "yesterday"], "at: An instant like 2026-01-31T12:00:00Z is expected here."),
            (["level": "urgent"], "level: One of low, normal, high is expected here."),
            (["items": "a"], "items: An array is expected here."),
            (["items": [[:], 1]], "items[1]: A JSON object is expected here."),
            (["items": [.null]], "items[0]: A JSON object is expected here."),
            (["items": [[:], [:], ["uri": "a"]]], "items[2].uri: The field is unknown; check its name."),
            (["items": [["url": .null]]], "items[0].url: null is not allowed here; leave the field out."),
            (["items": [["play": ["kinds": ["a", 2]]]]], "items[0].play.kinds[1]: A string is expected here."),
            (["items": [["play": ["second": 1]]]], "items[0].play.second: The field is unknown; check its name."),
            (["few": ["a", "b", "c"]], "few: At most 2 entries are allowed."),
            (["few": ["a", ""]], "few[1]: The string must not be empty."),
            (["change": "a"], "change: A whole number is expected here."),
            (["other": ["second": 1]], "other.second: The field is unknown; check its name."),
            ([1], "(body): A JSON object is expected here."),
        ] as [(JSON, String)])
    func namesAnInvalidMember(json: JSON, expected: String) {
        #expect(fault(json) == expected)
    }

    @Test("An unknown member is reported before other errors")
    func reportsUnknownMembersFirst() {
        #expect(fault(["text": 1, "texts": 1]) == "texts: The field is unknown; check its name.")
    }

    @Test("Paths begin with the path of the decoded value")
    func pathsBeginWithThePathOfTheValue() {
        #expect(fault(["a": 1], as: Item.self, at: "b[2].c") == "b[2].c.a: The field is unknown; check its name.")
        #expect(fault("a", as: Item.self, at: "b") == "b: A JSON object is expected here.")
        #expect(fault(["5": "a"], as: [String: Int].self) == "5: A whole number is expected here.")
    }

    @Test("A change distinguishes null from absent")
    func aChangeDistinguishesNullFromAbsent() throws {
        #expect(try decode([:]).change == .absent)
        #expect(try decode(["change": .null]).change == .null)
        #expect(try decode(["change": 5]).change == .value(5))
        #expect(try decode(["other": ["seconds": 1]]).other == .value(Part(seconds: 1)))
    }

    @Test("A change has the new value, and none if the value stays")
    func aChangeHasTheNewValue() {
        #expect(Omittable<Int>.absent.update == .none && Omittable<Int>.null.update == .some(nil))
        #expect(
            Omittable.value(5).update == .some(5) && Omittable.value(5).value == 5 && Omittable<Int>.null.value == nil)
        #expect(Omittable.value(5).map(String.init) == .value("5") && Omittable<Int>.null.map(String.init) == .null)
    }

    @Test("The decoded members of a type are its keys, in their order")
    func theDecodedMembersAreTheKeys() {
        #expect(JSON.keys(of: Item.self) == ["url", "play"])
        #expect(JSON.keys(of: Flat.self) == ["url", "play", "unread"])
    }

    /// Decodes one object by two containers.
    private struct Flat: Decodable {
        enum CodingKeys: CodingKey { case url, play, unread }
        var item: Item

        init(from decoder: any Decoder) throws {
            let members = try decoder.container(keyedBy: CodingKeys.self)
            if members.contains(.url) { _ = members.contains(.unread) }
            item = try Item(from: decoder)
            if item == Item() { _ = members.contains(.unread) }
        }
    }

    @Test("A member that is a key but is not consumed is an error")
    func aMemberMustBeConsumed() throws {
        #expect(try decode(["url": "a", "unread": 1], as: Flat.self).item == Item(url: "a"))
        #expect(fault(["play": [:], "unread": 1], as: Flat.self) == "unread: The field is unknown; check its name.")
    }

    @Test("Documents of others can have unknown members, and null is absent")
    func lenientDecoding() throws {
        let json: JSON = ["url": .null, "new": 1, "play": ["seconds": .null, "kinds": ["a"], "new": [:]]]
        #expect(try json.decode(Item.self, isStrict: false) == Item(play: Part(kinds: ["a"])))
        #expect(throws: CacheError.self) { try JSON.object([.init("url", 1)]).decode(Item.self, isStrict: false) }
    }
}
