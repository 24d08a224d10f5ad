import Testing

@testable import CacheAPI
@testable import LarderServer

@Suite struct TokenAccessTests {
    private func access(_ prefixes: [String]?) -> TokenAccess {
        TokenAccess(
            AccessDocument(
                token: .init(id: "player", scope: "read"), assetPrefixes: prefixes,
                operations: [.init(method: "GET", path: "/v1/assets", limited: true)]))
    }

    @Test("A missing operation is named with the token and its limits")
    func aMissingOperationIsNamed() throws {
        let access = access(["/o/media/a/"])

        try access.require(["GET /v1/assets"])
        let error = #expect(throws: ClientError.self) { try access.require(["GET /v1/assets", "GET /v1/stats"]) }
        #expect(
            error?.message == """
                The token player (scope read, limited to /o/media/a/) does not permit GET /v1/stats, which this command \
                needs. (code tokenScope)
                """)
    }

    @Test(
        "The prefix of a list follows from the limits where they leave no choice",
        arguments: [
            (["/o/media/a/"], nil, nil, "/o/media/a/"), (["/o/media/a/"], nil, "media", "/o/media/a/"),
            (["/o/media/a/"], "/o/media/a/b", nil, "/o/media/a/b"), (["/o/media/", "/o/b/"], nil, "media", nil),
            (["/o/media/a/", "/o/b/c/"], nil, "b", "/o/b/c/"), (nil, nil, nil, nil),
        ] as [([String]?, String?, String?, String?)])
    func theOnlyPrefixIsUsed(own: [String]?, prefix: String?, origin: String?, expected: String?) throws {
        #expect(try access(own).prefix(prefix, origin: origin) == expected)
    }

    @Test("A choice of prefixes is left to the user", arguments: [nil, "other"])
    func aChoiceIsReported(origin: String?) {
        let access = access(["/o/media/a/", "/o/b/"])

        let error = #expect(throws: ClientError.self) { try access.prefix(nil, origin: origin) }
        #expect(error?.message.contains("--prefix /o/media/a/ or --prefix /o/b/") ?? false)
    }
}
