import CacheCore
import Testing
import UpstreamAccounts

@Suite struct SharedAccessSignatureTests {
    private static func account(_ text: String) -> TestAccount {
        TestAccount(files: ["sas": text]) {
            $0.kind = .sas
            $0.file = "sas"
        }
    }

    @Test(
        "The parameters of the file are added to the query unchanged",
        arguments: [
            ("https://a.example/c/b%20c", "https://a.example/c/b%20c?sv=2022&se=2016-01-01&sig=a%2Bb%3D"),
            ("https://a.example/c/b?", "https://a.example/c/b?sv=2022&se=2016-01-01&sig=a%2Bb%3D"),
            ("https://a.example:8443/c?x=%2f&y", "https://a.example:8443/c?x=%2f&y&sv=2022&se=2016-01-01&sig=a%2Bb%3D"),
            ("https://a.example/c?sig=old&x&sv", "https://a.example/c?x&sv=2022&se=2016-01-01&sig=a%2Bb%3D"),
        ])
    func added(url: String, expected: String) async throws {
        let test = Self.account("?sv=2022&se=2016-01-01&sig=a%2Bb%3D\r\n")
        try await test.refresh()

        let request = try test.authorize("GET", url)

        #expect(request.url.text == expected)
        #expect(request.url.query.map { "?" + $0 } == expected.split(separator: "?").last.map { "?" + $0 })
        #expect(request.headers == [:])
    }

    @Test("The signed expiry is the expiry of the credentials, and the file is read again every minute")
    func expiry() async throws {
        let test = Self.account("se=2015-08-30T12%3A40%3A00Z&sig=a")
        try await test.refresh()
        #expect(try test.account.status.expiresAt == RFC3339.parse("2015-08-30T12:40:00Z"))
        #expect(try test.state == .valid)
        test.clock.advance(by: .seconds(60))
        #expect(try test.state == .refreshSoon)
        test.clock.advance(by: .seconds(180))
        #expect(try test.state == .missing)
        #expect(throws: CacheError.self) { try test.authorize() }
        #expect(try await test.refreshError().message.contains("expired at 2015-08-30T12:40:00.000Z"))

        test.write("sig=b", to: "sas")
        try await test.refresh()

        #expect(try test.authorize().url.query == "sig=b")
        #expect(try test.account.status.expiresAt == nil)
    }

    @Test(
        "An unusable file is reported without its content",
        arguments: ["", "hidden", "sig=", "sig=hidden\nsig=b", "sig=hidden#", "sig=hidden&se=tomorrow"])
    func unusable(text: String) async throws {
        let error = try await Self.account(text).refreshError()

        #expect(error.code == .upstreamProtocol)
        #expect(!error.message.contains("hidden"))
    }
}
