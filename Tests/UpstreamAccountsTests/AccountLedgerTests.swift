import CacheCore
import Testing

@testable import UpstreamAccounts

/// Refreshes, refusals and the clock skew of an account.
@Suite struct AccountLedgerTests {
    private static func token(_ lifetime: Int = 3600) async throws -> TestAccount {
        let test = TestAccount(files: ["client": #"{"client_id":"id","client_secret":"s"}"#]) {
            $0.kind = .oauth2
            $0.file = "client"
            $0.tokenURL = "https://oauth2.example/token"
        }
        test.transport.add(200, #"{"access_token":"A","expires_in":\#(lifetime)}"#)
        try await test.refresh()
        return test
    }

    private static func keys() async throws -> TestAccount {
        let test = TestAccount(environment: ["AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "s"]) { $0.kind = .s3 }
        try await test.refresh()
        return test
    }

    // MARK: Refreshes

    @Test("Settings without a type have no account")
    func noKind() {
        #expect(throws: CacheError.self) { try TestAccount { $0.kind = nil }.account }
    }

    @Test(
        "A refresh is due five minutes before the expiry, or in the last quarter of a short lifetime",
        arguments: [(3600, 3300), (1200, 900), (400, 300)])
    func margin(lifetime: Int, due: Int) async throws {
        let test = try await Self.token(lifetime)

        test.clock.advance(by: .seconds(due) - .milliseconds(1))
        #expect(try test.state == .valid)
        test.clock.advance(by: .milliseconds(1))
        #expect(try test.state == .refreshSoon)
        #expect(try test.authorize().headers["Authorization"] == "Bearer A")
        test.clock.advance(by: .seconds(lifetime - due))
        #expect(try test.state == .missing)
        #expect(throws: CacheError.self) { try test.authorize() }
    }

    @Test("After a failed refresh the earlier token stays in use, and the next refresh is delayed")
    func failedRefresh() async throws {
        let test = try await Self.token()
        test.clock.advance(by: .seconds(3300))
        for delay in [5, 10, 20, 40, 60, 60] {
            #expect(try test.state == .refreshSoon)
            test.transport.add(CacheError(.upstreamTimedOut(.connect), "The endpoint does not answer."))
            _ = try await test.refreshError()
            test.clock.advance(by: .seconds(delay) - .milliseconds(1))
            #expect(try test.state == .valid)
            #expect(try test.authorize().headers["Authorization"] == "Bearer A")
            test.clock.advance(by: .milliseconds(1))
        }
        #expect(try test.account.status.failures == 6)
        #expect(try test.account.status.error == "The endpoint does not answer.")

        test.transport.add(200, #"{"access_token":"B"}"#)
        try await test.refresh()

        #expect(try test.authorize().headers["Authorization"] == "Bearer B")
        #expect(
            try test.account.status
                == AccountStatus(
                    kind: .oauth2, expiresAt: test.clock.now() + .seconds(3600), refreshedAt: test.clock.now(),
                    refreshes: 2, failures: 6, error: nil))
    }

    @Test("A cancelled refresh is no failure")
    func cancelledRefresh() async throws {
        let test = try await Self.token()
        test.transport.add(CacheError(.cancelled, "The refresh was cancelled."))

        #expect(try await test.refreshError().code == .cancelled)
        #expect(try test.account.status.failures == 0)
        #expect(try test.account.status.error == nil)
    }

    @Test("The error for missing credentials names the origin and the failed refresh")
    func missingCredentials() async throws {
        let test = TestAccount { $0.kind = .s3 }
        let reason = try await test.refreshError().message

        #expect {
            try test.authorize()
        } throws: { error in
            (error as? CacheError)?.code == .upstreamUnreachable()
                && (error as? CacheError)?.message == "The origin \"media\" has no usable credentials. \(reason)"
        }
    }

    @Test("A response above the limit is refused")
    func longResponse() async throws {
        let test = try await Self.token()
        test.transport.add(200, String(repeating: " ", count: AccountDependencies.bodyLimit) + "{}")

        #expect(try await test.refreshError().message.contains("exceeds 262144 bytes"))
    }

    // MARK: Refusals

    @Test("A refused token is replaced, and requests with the earlier one can be repeated")
    func refusedToken() async throws {
        let test = try await Self.token()
        let first = try test.authorize()

        #expect(try test.refused(401, revision: first.revision))
        #expect(try test.state == .missing)
        #expect(try test.refused(401, revision: first.revision))
        test.transport.add(200, #"{"access_token":"B"}"#)
        try await test.refresh()

        #expect(try test.state == .valid)
        #expect(try test.refused(401, revision: first.revision))
        #expect(try test.state == .valid)
    }

    @Test("A new token that is refused at once is not replaced again", arguments: [(401, 10), (403, 60)])
    func refusedAgain(status: Int, interval: Int) async throws {
        let test = try await Self.token()
        #expect(try test.refused(status, revision: try test.authorize().revision))
        test.transport.add(200, #"{"access_token":"B"}"#)
        try await test.refresh()
        let second = try test.authorize()

        test.clock.advance(by: .seconds(interval) - .milliseconds(1))
        #expect(try !test.refused(status, revision: second.revision))
        #expect(try test.state == .valid)
        test.clock.advance(by: .milliseconds(1))
        #expect(try test.refused(status, revision: second.revision))
        #expect(try test.state == .missing)
    }

    @Test("A refused token stays in use if it cannot be replaced")
    func irreplaceableToken() async throws {
        let test = try await Self.token()
        _ = try test.refused(403, revision: try test.authorize().revision)
        test.transport.add(503, "")

        _ = try await test.refreshError()

        #expect(try test.state == .valid)
        #expect(try test.authorize().headers["Authorization"] == "Bearer A")
    }

    @Test("Statuses that say nothing about a token are no refusals", arguments: [400, 404, 410, 429, 500])
    func otherStatuses(status: Int) async throws {
        let test = try await Self.token()

        #expect(try !test.refused(status, revision: try test.authorize().revision))
        #expect(try test.state == .valid)
    }

    @Test("Fixed keys are not replaced after a refusal")
    func fixedKeys() async throws {
        let test = try await Self.keys()

        #expect(try !test.refused(403, revision: try test.authorize().revision))
        #expect(try test.state == .valid)
    }

    // MARK: Clock skew

    @Test(
        "The date of a refusal corrects the time of signatures once",
        arguments: [
            (403, "Sun, 30 Aug 2015 12:26:00 GMT", "20150830T122600Z"),
            (400, "Sun, 30 Aug 2015 13:36:00 GMT", "20150830T133600Z"),
        ])
    func skew(status: Int, date: String, signed: String) async throws {
        let test = try await Self.keys()
        let (first, other) = (try test.authorize(), try test.authorize())

        #expect(try test.refused(status, ["Date": date], revision: first.revision))
        let second = try test.authorize()
        #expect(second.headers["X-Amz-Date"] == signed)
        #expect(second.signature != first.signature)
        #expect(try test.refused(status, ["Date": date], revision: other.revision))
        #expect(try !test.refused(status, ["Date": date], revision: second.revision))
        #expect(try test.authorize().headers["X-Amz-Date"] == signed)
    }

    @Test(
        "A date that cannot be the reason of a refusal changes nothing",
        arguments: [
            (403, ["Date": "Sun, 30 Aug 2015 12:37:00 GMT"]), (403, ["Date": "Sun, 30 Aug 2015 12:35:00 GMT"]),
            (403, ["Date": "yesterday"]), (403, [:]), (404, ["Date": "Sun, 30 Aug 2015 13:36:00 GMT"]),
            (401, ["Date": "Sun, 30 Aug 2015 13:36:00 GMT"]),
            (403, ["Date": "Sun, 30 Aug 2015 10:36:00 GMT", "Age": "7200"]),
        ] as [(Int, HeaderList)])
    func noSkew(status: Int, headers: HeaderList) async throws {
        let test = try await Self.keys()

        #expect(try !test.refused(status, headers, revision: try test.authorize().revision))
        #expect(try test.authorize().headers["X-Amz-Date"] == "20150830T123600Z")
    }

    @Test("The date of a refusal does not change tokens")
    func skewOfToken() async throws {
        let test = try await Self.token()
        let first = try test.authorize()

        #expect(try test.refused(403, ["Date": "Sun, 30 Aug 2015 13:36:00 GMT"], revision: first.revision))
        #expect(try test.state == .missing)
        #expect(try test.authorize().revision == first.revision)
    }

    // MARK: Secrets

    @Test("Descriptions contain no secret")
    func descriptions() async throws {
        let test = TestAccount(files: ["sas": "sig=hidden"]) {
            $0.kind = .sas
            $0.file = "sas"
        }
        try await test.refresh()
        let keys = try AccessKeys("A", "hidden", "hidden", from: "The test")
        let request = UpstreamRequest(
            .post, "https://a.example/b?hidden", headers: ["Authorization": "hidden"], body: Array("hidden".utf8))
        let head = UpstreamHead(status: 200, headers: ["Set-Cookie": "hidden"])
        let values: [Any] = [
            try test.authorize(), keys, AccountMaterial.keys(keys), StoredRefreshToken(token: "hidden", fileDigest: ""),
            request, UpstreamResponse(head: head, body: Array("hidden".utf8)),
            try SharedAccessSignature(Array("sig=hidden".utf8)),
            try ClientFile(Array(#"{"client_secret":"hidden"}"#.utf8)),
        ]

        for value in values {
            #expect(!"\(value)".contains("hidden"))
            #expect(!"\(value)".contains("104, 105, 100"))
        }
    }
}
