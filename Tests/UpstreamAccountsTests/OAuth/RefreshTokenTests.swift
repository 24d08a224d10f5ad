import CacheCore
import Testing
import UpstreamAccounts

/// The grant with a refresh token, which servers may replace.
@Suite struct RefreshTokenTests {
    private static func file(_ token: String) -> String {
        #"{"client_id":"id","auth":"post","refresh_token":"\#(token)"}"#
    }

    private static func settings() -> OriginAuth {
        var settings = OriginAuth()
        settings.kind = .oauth2
        settings.grant = .refreshToken
        settings.file = "client.json"
        settings.tokenURL = "https://oauth2.example/token"
        return settings
    }

    private static func client() -> TestAccount {
        TestAccount(files: ["client.json": file("FILE1")]) { $0 = settings() }
    }

    private static func sent(_ test: TestAccount) -> [Substring?] {
        test.transport.requests.map { $0.text.split(separator: "refresh_token=").last?.prefix { $0 != "&" } }
    }

    @Test("A refresh token that is not replaced is used again")
    func permanentToken() async throws {
        let test = Self.client()
        test.transport.add(200, #"{"access_token":"A","refresh_token":"FILE1"}"#)
        test.transport.add(200, #"{"access_token":"B"}"#)

        try await test.refresh()
        try await test.refresh()

        #expect(
            test.transport.requests[0].text == "grant_type=refresh_token&refresh_token=FILE1&client_id=id")
        #expect(Self.sent(test) == ["FILE1", "FILE1"])
        #expect(test.store["media"] == nil)
        #expect(try test.authorize().headers["Authorization"] == "Bearer B")
    }

    @Test("A replaced refresh token is saved, and used after a restart")
    func rotation() async throws {
        let test = Self.client()
        test.transport.add(200, #"{"access_token":"A","refresh_token":"SECOND"}"#)
        test.transport.add(200, #"{"access_token":"B","refresh_token":"THIRD"}"#)
        test.transport.add(200, #"{"access_token":"C"}"#)

        try await test.refresh()
        #expect(test.store["media"] == "SECOND")
        try await test.refresh()
        #expect(test.store["media"] == "THIRD")
        let restarted = try #require(test.account(Self.settings(), [:]))
        try await restarted.refresh()

        #expect(Self.sent(test) == ["FILE1", "SECOND", "THIRD"])
    }

    @Test("A new refresh token in the file replaces the stored one")
    func newFile() async throws {
        let test = Self.client()
        test.transport.add(200, #"{"access_token":"A","refresh_token":"SECOND"}"#)
        test.transport.add(200, #"{"access_token":"B","refresh_token":"OTHER"}"#)
        test.transport.add(200, #"{"access_token":"C"}"#)
        try await test.refresh()
        test.write(Self.file("FILE2"), to: "client.json")

        try await test.refresh()
        try await test.refresh()

        #expect(Self.sent(test) == ["FILE1", "FILE2", "OTHER"])
    }

    @Test("A refresh token that cannot be saved is not used before it is saved")
    func unsavedToken() async throws {
        let test = Self.client()
        test.transport.add(200, #"{"access_token":"A","refresh_token":"SECOND"}"#)
        test.store.isFailing = true

        try await test.refresh()
        #expect(try test.authorize().headers["Authorization"] == "Bearer A")
        #expect(try test.account.status.error?.contains("could not be saved") == true)
        #expect(try test.account.status.failures == 0)

        #expect(try await test.refreshError().code == .storageFull)
        #expect(test.transport.requests.count == 1)

        test.store.isFailing = false
        test.transport.add(200, #"{"access_token":"B"}"#)
        try await test.refresh()
        #expect(test.store["media"] == "SECOND")
        #expect(Self.sent(test) == ["FILE1", "SECOND"])
        #expect(try test.account.status.error == nil)
    }

    @Test("A file without refresh token is reported")
    func noToken() async throws {
        let test = Self.client()
        test.write(#"{"client_id":"id"}"#, to: "client.json")

        #expect(try await test.refreshError().message.contains("needs refresh_token"))
    }
}
