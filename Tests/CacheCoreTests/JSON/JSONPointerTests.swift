import CacheCore
import Testing

@Suite struct JSONPointerTests {
    /// The document of RFC 6901 §5, with members for arrays and escapes.
    private static let document = #"""
        {"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"e^f":3,"g|h":4,"i\\j":5,"k\"l":6," ":7,"m~n":8}
        """#

    @Test(
        "The examples of RFC 6901",
        arguments: [
            ("/foo/0", JSON.string("bar")), ("/", 0), ("/a~1b", 1), ("/c%d", 2), ("/e^f", 3), ("/g|h", 4),
            (#"/i\j"#, 5), (#"/k"l"#, 6), ("/ ", 7), ("/m~0n", 8),
        ])
    func examples(pointer: String, value: JSON) throws {
        let json = try JSONParser.parse(Self.document.utf8)
        #expect(json.value(at: pointer) == value)
        #expect(json.value(at: "") == json)
    }

    @Test(
        "A pointer to nothing, and a malformed pointer, have no value",
        arguments: ["foo", "/foo/2", "/foo/-", "/foo/01", "/foo/+1", "/foo/0/x", "/m~2n", "/m~", "/bar", "/FOO"])
    func nothing(pointer: String) throws {
        #expect(try JSONParser.parse(Self.document.utf8).value(at: pointer) == nil)
    }
}
