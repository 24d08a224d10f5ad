import CacheCore
import Testing
import UpstreamAccounts

@Suite struct SecurityTokenServiceTests {
    private static let role = "arn:aws:iam::123456789012:role/media"

    private static func response(_ action: String, end: String = "2015-08-30T13:36:00Z") -> String {
        """
        <\(action)Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><\(action)Result>
          <AssumedRoleUser><Arn>arn:aws:sts::1:assumed-role/media/larder</Arn></AssumedRoleUser>
          <Credentials><AccessKeyId>ASIASTS</AccessKeyId><SecretAccessKey>se&amp;cret</SecretAccessKey>
            <SessionToken>token==</SessionToken><Expiration>\(end)</Expiration></Credentials>
        </\(action)Result><ResponseMetadata><RequestId>1</RequestId></ResponseMetadata></\(action)Response>
        """
    }

    private static func assumeRole(_ change: (inout OriginAuth) -> Void = { _ in }) -> TestAccount {
        TestAccount(environment: ["AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "SECRETKEY"]) {
            $0.kind = .s3
            $0.credentials = .assumeRole
            $0.roleARN = role
            $0.region = "eu-central-1"
            change(&$0)
        }
    }

    private static func webIdentity(_ environment: [String: String] = [:], file: String? = "token") -> TestAccount {
        TestAccount(environment: environment, files: ["token": "JWT.1\n", "/run/token": "JWT.2"]) {
            $0.kind = .s3
            $0.credentials = .webIdentity
            $0.roleARN = file == nil ? nil : role
            $0.file = file
        }
    }

    @Test("AssumeRole is signed with the keys of its source, and its keys are used until they expire")
    func assumedRole() async throws {
        let test = Self.assumeRole { $0.externalID = "ext 1" }
        test.transport.add(200, Self.response("AssumeRole"))

        try await test.refresh()

        let request = test.transport.requests[0]
        #expect(request.method == .post)
        #expect(request.url == "https://sts.eu-central-1.amazonaws.com/")
        #expect(!request.allowsMetadataServices)
        #expect(
            request.text
                == "Action=AssumeRole&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A123456789012%3Arole%2Fmedia"
                + "&RoleSessionName=larder&ExternalId=ext%201")
        // Computed with botocore's SigV4Auth.
        #expect(
            request.headers["Authorization"]
                == "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/eu-central-1/sts/aws4_request, "
                + "SignedHeaders=content-type;host;x-amz-date, "
                + "Signature=8e8a276c649b42fe6da2d0347ebac4666eac9fd091df303497488cd004101e89")
        #expect(request.headers["Host"] == nil)
        #expect(try test.account.status.expiresAt == RFC3339.parse("2015-08-30T13:36:00Z"))
        let authorized = try test.authorize()
        #expect(authorized.headers["Authorization"]?.contains("Credential=ASIASTS/") == true)
        #expect(authorized.headers["X-Amz-Security-Token"] == "token==")
    }

    @Test("AssumeRole signs the session token of its source and a port that is not the default")
    func temporarySource() async throws {
        let test = Self.assumeRole {
            $0.source = .static
            $0.accessKeyID = "AKIDEXAMPLE"
            $0.secretAccessKey = "SECRETKEY"
            $0.sessionToken = "SESSION=="
            $0.stsURL = "http://127.0.0.1:5000"
        }
        test.transport.add(200, Self.response("AssumeRole"))

        try await test.refresh()

        let request = test.transport.requests[0]
        #expect(request.url == "http://127.0.0.1:5000/")
        #expect(request.headers["X-Amz-Security-Token"] == "SESSION==")
        // Computed with botocore's SigV4Auth.
        #expect(
            request.headers["Authorization"]?.hasSuffix(
                "SignedHeaders=content-type;host;x-amz-date;x-amz-security-token, "
                    + "Signature=060aaf63a797e2ac808f4e5a55b1121becb1ca3f82c79c6d719a82a454bf0864"
            ) == true)
    }

    @Test("A web identity is exchanged without a signature, and its token file is read at each refresh")
    func webIdentity() async throws {
        let test = Self.webIdentity()
        test.transport.add(200, Self.response("AssumeRoleWithWebIdentity"))
        test.transport.add(200, Self.response("AssumeRoleWithWebIdentity"))
        try await test.refresh()
        test.write("JWT.3", to: "token")
        try await test.refresh()

        let (requests, start) = (
            test.transport.requests,
            "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A123456789012%3Arole"
                + "%2Fmedia&RoleSessionName=larder&WebIdentityToken="
        )
        #expect(requests.map(\.text) == [start + "JWT.1", start + "JWT.3"])
        #expect(requests[0].url == "https://sts.us-east-1.amazonaws.com/")
        #expect(requests[0].headers["Authorization"] == nil)
        #expect(try test.authorize().headers["Authorization"]?.contains("Credential=ASIASTS/") == true)
    }

    @Test("The environment names the role and the token file of a web identity")
    func environment() async throws {
        let test = Self.webIdentity(
            ["AWS_ROLE_ARN": "arn:aws:iam::1:role/env", "AWS_WEB_IDENTITY_TOKEN_FILE": "/run/token"], file: nil)
        test.transport.add(200, Self.response("AssumeRoleWithWebIdentity"))

        try await test.refresh()

        #expect(test.transport.requests[0].text.contains("RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fenv&"))
        #expect(test.transport.requests[0].text.hasSuffix("WebIdentityToken=JWT.2"))
    }

    @Test("A role can be assumed with the keys of a web identity's role")
    func chainedRoles() async throws {
        let test = TestAccount(
            environment: ["AWS_ROLE_ARN": "arn:aws:iam::1:role/first"], files: ["token": "JWT"]
        ) {
            $0.kind = .s3
            $0.credentials = .assumeRole
            $0.source = .webIdentity
            $0.file = "token"
            $0.roleARN = Self.role
        }
        test.transport.add(200, Self.response("AssumeRoleWithWebIdentity"))
        test.transport.add(200, Self.response("AssumeRole"))

        try await test.refresh()

        #expect(test.transport.requests[0].text.contains("role%2Ffirst"))
        #expect(test.transport.requests[1].text.contains("role%2Fmedia"))
        #expect(test.transport.requests[1].headers["Authorization"]?.contains("Credential=ASIASTS/") == true)
    }

    @Test("The domain of a Chinese region is used")
    func chineseRegion() async throws {
        let test = Self.assumeRole { $0.region = "cn-north-1" }

        _ = try await test.refreshError()

        #expect(test.transport.requests.first?.url == "https://sts.cn-north-1.amazonaws.com.cn/")
    }

    @Test("A refusal of STS is reported with its code, but not with its message")
    func refusal() async throws {
        let test = Self.webIdentity()
        test.transport.add(
            400,
            """
            <ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type>
            <Code>ExpiredTokenException</Code><Message>Token JWT.1 expired</Message></Error></ErrorResponse>
            """)

        let error = try await test.refreshError()

        #expect(error.code == .upstreamRefused(status: 400))
        #expect(
            error.message
                == "STS refused AssumeRoleWithWebIdentity with status 400 and code ExpiredTokenException.")
    }

    @Test(
        "An unusable response of STS is reported without its content",
        arguments: [
            "hidden", "", "<a>", response("AssumeRole").replacing("SecretAccessKey", with: "Other"),
            response("AssumeRoleWithWebIdentity"), response("AssumeRole", end: "hidden"),
            "<!DOCTYPE a>" + response("AssumeRole"), response("AssumeRole").replacing("token==", with: "hidden\nx"),
            response("AssumeRole").replacing(
                "<SessionToken>", with: "<SessionToken>hidden</SessionToken><SessionToken>"),
        ])
    func unusableResponse(body: String) async throws {
        let test = Self.assumeRole()
        test.transport.add(200, body)

        let error = try await test.refreshError()

        #expect(error.code == .upstreamProtocol)
        #expect(!error.message.contains("hidden"))
    }

    @Test("An empty token file is reported before a request is sent")
    func emptyTokenFile() async throws {
        let test = Self.webIdentity()
        test.write("\n", to: "token")

        #expect(try await test.refreshError().message.contains("token file is empty"))
        #expect(test.transport.requests.isEmpty)
    }

    @Test("A wrong clock is corrected by the date of the refusal, and the call is repeated once")
    func wrongClock() async throws {
        let test = Self.assumeRole()
        test.transport.add(403, "", headers: ["Date": "Sun, 30 Aug 2015 13:36:00 GMT"])
        test.transport.add(200, Self.response("AssumeRole", end: "2015-08-30T14:36:00Z"))

        try await test.refresh()

        #expect(
            test.transport.requests.map { $0.headers["X-Amz-Date"] } == ["20150830T123600Z", "20150830T133600Z"])
        #expect(try test.account.status.expiresAt == RFC3339.parse("2015-08-30T13:36:00Z"))
        #expect(try test.account.status.failures == 0)
        #expect(try test.authorize().headers["X-Amz-Date"] == "20150830T133600Z")
    }

    @Test("A refusal with the right date is not repeated")
    func rightClock() async throws {
        let test = Self.assumeRole()
        test.transport.add(403, "", headers: ["Date": "Sun, 30 Aug 2015 12:36:59 GMT"])

        #expect(try await test.refreshError().code == .upstreamRefused(status: 403))
        #expect(test.transport.requests.count == 1)
    }
}
