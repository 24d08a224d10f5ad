import CacheCore
import Testing
import UpstreamAccounts

@Suite struct TokenSourceTests {
    private static let url = "https://oauth2.example/token"

    private static func client(
        _ grant: OriginAuth.Grant, _ file: String, _ change: (inout OriginAuth) -> Void = { _ in }
    ) -> TestAccount {
        TestAccount(files: ["client.json": file]) {
            $0.kind = .oauth2
            $0.grant = grant
            $0.file = "client.json"
            $0.tokenURL = url
            change(&$0)
        }
    }

    // MARK: Client credentials

    @Test("Client credentials are sent in the Authorization field, form-encoded")
    func basicAuthentication() async throws {
        let test = Self.client(.clientCredentials, #"{"client_id":"a b","client_secret":"s:e/c?>~"}"#) {
            $0.scope = "read write"
            $0.audience = "https://api.example"
        }
        test.transport.add(200, #"{"access_token":"TOKEN","token_type":"bearer","expires_in":600}"#)

        try await test.refresh()

        let request = test.transport.requests[0]
        #expect(request.method == .post)
        #expect(request.url == Self.url)
        #expect(!request.allowsMetadataServices)
        #expect(request.headers["Content-Type"] == "application/x-www-form-urlencoded")
        // a%20b:s%3Ae%2Fc%3F%3E~
        #expect(request.headers["Authorization"] == "Basic YSUyMGI6cyUzQWUlMkZjJTNGJTNFfg==")
        #expect(
            request.text == "grant_type=client_credentials&scope=read%20write&audience=https%3A%2F%2Fapi.example")
        #expect(try test.authorize().headers == ["Authorization": "Bearer TOKEN"])
        #expect(try test.account.status.expiresAt == TestClock.start + .seconds(600))
    }

    @Test("Client credentials are sent in the body if the client file says so")
    func postAuthentication() async throws {
        let test = Self.client(.clientCredentials, #"{"client_id":"id","client_secret":"s+1","auth":"post"}"#)
        test.transport.add(200, #"{"access_token":"TOKEN"}"#)

        try await test.refresh()

        #expect(test.transport.requests[0].headers["Authorization"] == nil)
        #expect(
            test.transport.requests[0].text == "grant_type=client_credentials&client_id=id&client_secret=s%2B1")
    }

    @Test("The scheme OAuth and the request's URL are kept")
    func scheme() async throws {
        let test = Self.client(.clientCredentials, #"{"client_id":"id","client_secret":"s"}"#) { $0.scheme = .oauth }
        test.transport.add(200, #"{"access_token":"TOKEN"}"#)
        try await test.refresh()

        let request = try test.authorize("GET", "https://disk.example/a+b?x=+")

        #expect(request.headers == ["Authorization": "OAuth TOKEN"])
        #expect(request.url.text == "https://disk.example/a+b?x=+")
    }

    @Test(
        "The lifetime of a token is a number, a text, or one hour",
        arguments: [("600", 600), ("\"600\"", 600), ("599.9", 599), ("null", 3600), ("99999999999", 315_360_000)])
    func lifetime(value: String, seconds: Int) async throws {
        let test = Self.client(.clientCredentials, #"{"client_id":"id","client_secret":"s"}"#)
        test.transport.add(200, #"{"access_token":"T","expires_in":\#(value)}"#)

        try await test.refresh()

        #expect(try test.account.status.expiresAt == TestClock.start + .seconds(seconds))
    }

    @Test(
        "An unusable response of the token endpoint is reported without its content",
        arguments: [
            "hidden", #"{"access_token":""}"#, #"{"access_token":"hid den"}"#, #"{"token":"hidden"}"#,
            #"{"access_token":"hidden","expires_in":0}"#, #"{"access_token":"hidden","expires_in":"soon"}"#,
            #"{"access_token":"hidden","token_type":"mac"}"#, #"{"access_token":"hidden","access_token":"b"}"#,
        ])
    func unusableResponse(body: String) async throws {
        let test = Self.client(.clientCredentials, #"{"client_id":"id","client_secret":"s"}"#)
        test.transport.add(200, body)

        let error = try await test.refreshError()

        #expect(error.code == .upstreamProtocol)
        #expect(!error.message.contains("hid"))
        #expect(try test.state == .missing)
    }

    @Test(
        "A refusal of the token endpoint is reported with its code only",
        arguments: [
            (400, #"{"error":"invalid_grant","error_description":"hidden"}"#, " and error invalid_grant."),
            (401, #"{"error":"hidden token"}"#, " and error (unreadable)."), (500, "<html>hidden", "status 500."),
            (302, "", "status 302."),
        ])
    func refusal(status: Int, body: String, end: String) async throws {
        let test = Self.client(.clientCredentials, #"{"client_id":"id","client_secret":"s"}"#)
        test.transport.add(status, body)

        let error = try await test.refreshError()

        #expect(error.code == .upstreamRefused(status: status))
        #expect(error.message.hasSuffix(end))
        #expect(!error.message.contains("hidden"))
    }

    @Test(
        "An unusable client file is reported without its content",
        arguments: [
            (#"{"client_id":"hidden"#, "not a JSON object"), ("[]", "not a JSON object"),
            (#"{"client_id":"hidden"}"#, "needs client_id and client_secret"),
            (#"{"client_id":1,"client_secret":"hidden"}"#, "invalid client_id"),
            (#"{"client_id":"id","client_secret":"hidden","auth":"jwt"}"#, "basic or post"),
        ])
    func unusableClientFile(file: String, message: String) async throws {
        let test = Self.client(.clientCredentials, file)

        let error = try await test.refreshError()

        #expect(error.message.contains(message))
        #expect(!error.message.contains("hidden"))
        #expect(test.transport.requests.isEmpty)
    }

    @Test(
        "The token endpoint is that of the settings, otherwise that of the client file, and must be https or local",
        arguments: [
            ("https://a.example/token?v=2", nil, "https://a.example/token?v=2"),
            (nil, "http://127.0.0.1:9/token", "http://127.0.0.1:9/token"), (nil, "http://a.example/token", nil),
            (nil, "https://user@a.example/token", nil), (nil, nil, nil),
        ] as [(String?, String?, String?)])
    func endpoint(setting: String?, member: String?, url: String?) async throws {
        let file = member.map { #","token_uri":"\#($0)""# } ?? ""
        let test = Self.client(.clientCredentials, #"{"web":{"client_id":"id","client_secret":"s"\#(file)}}"#) {
            $0.tokenURL = setting
        }

        _ = try await test.refreshError()

        #expect(test.transport.requests.first?.url == url)
    }

    // MARK: Assertions

    @Test("A service account of Google signs an assertion with the scope as a claim")
    func serviceAccount() async throws {
        let key = JSON.string(TestAssertions.privateKey).text
        let test = Self.client(
            .jwtBearer,
            """
            {"type":"service_account","project_id":"p","private_key_id":"key-1","private_key":\(key),"client_id":"1",
            "client_email":"larder@project.iam.gserviceaccount.com","token_uri":"https://oauth2.example/token"}
            """
        ) {
            $0.tokenURL = nil
            $0.scope = "https://www.googleapis.com/auth/devstorage.read_only"
        }
        test.transport.add(200, #"{"access_token":"TOKEN","expires_in":3599}"#)

        try await test.refresh()

        #expect(test.transport.requests[0].url == Self.url)
        #expect(test.transport.requests[0].headers["Authorization"] == nil)
        #expect(
            test.transport.requests[0].text
                == "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion="
                + TestAssertions.serviceAccount)
        #expect(try test.authorize().headers["Authorization"] == "Bearer TOKEN")
    }

    @Test("Another issuer signs an assertion with subject and audience, and sends the scope as a parameter")
    func otherIssuer() async throws {
        let key = JSON.string(TestAssertions.privateKey).text
        let test = Self.client(
            .jwtBearer, #"{"client_id":"client-1","client_secret":"s","subject":"media","private_key":\#(key)}"#
        ) {
            $0.scope = "read"
            $0.audience = "https://api.example"
        }
        test.transport.add(200, #"{"access_token":"TOKEN"}"#)

        try await test.refresh()

        // client-1:s
        #expect(test.transport.requests[0].headers["Authorization"] == "Basic Y2xpZW50LTE6cw==")
        #expect(test.transport.requests[0].text.hasSuffix("&assertion=\(TestAssertions.subject)&scope=read"))
    }

    @Test("A wrong clock is corrected by the date of the refusal, and the assertion is sent again once")
    func wrongClock() async throws {
        let key = JSON.string(TestAssertions.privateKey).text
        let test = Self.client(.jwtBearer, #"{"issuer":"i","private_key":\#(key)}"#)
        test.transport.add(400, #"{"error":"invalid_grant"}"#, headers: ["Date": "Sun, 30 Aug 2015 12:30:00 GMT"])
        test.transport.add(200, #"{"access_token":"TOKEN"}"#)

        try await test.refresh()

        #expect(test.transport.requests.count == 2)
        #expect(test.transport.requests[0].text != test.transport.requests[1].text)
        #expect(try test.account.status.expiresAt == TestClock.start + .seconds(3600))
    }

    @Test("An unusable private key is reported without its content")
    func unusableKey() async throws {
        let test = Self.client(.jwtBearer, #"{"issuer":"i","private_key":"hidden"}"#)

        let error = try await test.refreshError()

        #expect(error.message.contains("private_key"))
        #expect(!error.message.contains("hidden"))
    }
}
