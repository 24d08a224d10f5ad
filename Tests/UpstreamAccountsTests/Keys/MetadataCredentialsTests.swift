import CacheCore
import Testing
import UpstreamAccounts

/// Keys from the metadata services of instances and containers.
@Suite struct MetadataCredentialsTests {
    private static let keys = #"""
        {"Code":"Success","AccessKeyId":"ASIAMETA","SecretAccessKey":"secret","Token":"token",
        "Expiration":"2015-08-30T18:36:00Z"}
        """#

    private static func instance(_ environment: [String: String] = [:], url: String? = nil) -> TestAccount {
        TestAccount(environment: environment) {
            $0.kind = .s3
            $0.credentials = .instance
            $0.metadataURL = url
        }
    }

    private static func container(_ environment: [String: String], files: [String: String] = [:]) -> TestAccount {
        TestAccount(environment: environment, files: files) {
            $0.kind = .s3
            $0.credentials = .container
        }
    }

    @Test("An instance's keys come from its role, with a session token")
    func instanceKeys() async throws {
        let test = Self.instance()
        test.transport.add(200, "SESSION")
        test.transport.add(200, "media role\n")
        test.transport.add(200, Self.keys)

        try await test.refresh()

        let requests = test.transport.requests
        let base = "http://169.254.169.254/latest/"
        #expect(requests.map(\.method) == [.put, .get, .get])
        #expect(
            requests.map(\.url) == [
                base + "api/token", base + "meta-data/iam/security-credentials/",
                base + "meta-data/iam/security-credentials/media%20role",
            ])
        #expect(requests.allSatisfy { $0.allowsMetadataServices })
        #expect(requests[0].headers["X-aws-ec2-metadata-token-ttl-seconds"] == "21600")
        #expect(requests[1].headers["X-aws-ec2-metadata-token"] == "SESSION")
        #expect(requests[2].headers["X-aws-ec2-metadata-token"] == "SESSION")
        #expect(try test.account.status.expiresAt == RFC3339.parse("2015-08-30T18:36:00Z"))
        #expect(try test.authorize().headers["X-Amz-Security-Token"] == "token")
    }

    /// An account with keys that end in six hours.
    private func expiring() async throws -> TestAccount {
        let test = Self.instance()
        for body in ["SESSION", "role", Self.keys] { test.transport.add(200, body) }
        try await test.refresh()
        return test
    }

    @Test("Keys of an instance stay in use for 12 hours after their end while their source is down")
    func extensionOfKeys() async throws {
        let test = try await expiring()
        test.clock.advance(by: .seconds(6 * 3600))
        // The source is asked before expired keys are used.
        #expect(try test.state == .missing)
        test.transport.add(503, "")

        #expect(try await test.refreshError().code == .upstreamRefused(status: 503))

        #expect(try test.account.status.isStale && test.state == .valid)
        #expect(try test.authorize().headers["X-Amz-Security-Token"] == "token")
        test.clock.advance(by: .seconds(60))
        #expect(try test.state == .refreshSoon)
        test.clock.advance(by: .seconds(12 * 3600 - 61))
        #expect(try test.account.status.isStale)
        test.clock.advance(by: .seconds(1))
        #expect(try test.state == .missing && !test.account.status.isStale)
        #expect(throws: CacheError.self) { try test.authorize() }
    }

    @Test("Expired keys from the metadata service are used, because it has no newer ones")
    func expiredKeys() async throws {
        let test = try await expiring()
        test.clock.advance(by: .seconds(7 * 3600))
        for body in ["SESSION", "role", Self.keys] { test.transport.add(200, body) }

        try await test.refresh()

        let status = try test.account.status
        #expect(status.isStale && status.error?.contains("expired") == true)
        #expect(try test.state == .valid)
        let later = Self.keys.replacing("08-30T18:36", with: "08-31T18:36")
        for body in ["role", later] { test.transport.add(200, body) }
        try await test.refresh()
        #expect(try !test.account.status.isStale && test.account.status.error == nil)
    }

    @Test("ExpiredToken of the upstream ends the extension, also for the same keys", arguments: [400, 403])
    func endOfExtension(status: Int) async throws {
        let test = try await expiring()
        test.clock.advance(by: .seconds(7 * 3600))
        test.transport.add(CacheError(.upstreamUnreachable(), "No route."))
        _ = try await test.refreshError()
        let revision = try test.authorize().revision
        let account = try test.account

        let denied = ErrorDocument(Array("<Error><Code>Other</Code></Error>".utf8))
        _ = account.refused(status: 403, headers: [:], denied, revision: revision, at: test.clock.now())
        test.transport.add(CacheError(.upstreamUnreachable(), "No route."))
        _ = try await test.refreshError()
        #expect(account.status.isStale)

        let expired = ErrorDocument(Array("<Error><Code>ExpiredToken</Code></Error>".utf8))
        #expect(account.refused(status: status, headers: [:], expired, revision: revision, at: test.clock.now()))
        #expect(try test.state == .missing)
        for body in ["SESSION", "role", Self.keys] { test.transport.add(200, body) }
        _ = try await test.refreshError()
        #expect(try test.state == .missing && !account.status.isStale)
    }

    @Test("A refusal of the source, and keys of other sources, end with their time")
    func noExtension() async throws {
        let test = try await expiring()
        test.clock.advance(by: .seconds(7 * 3600))
        test.transport.add(404, "")
        test.transport.add(404, "")
        _ = try await test.refreshError()
        #expect(try test.state == .missing && !test.account.status.isStale)

        let other = Self.container(["AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://127.0.0.1/keys"])
        other.transport.add(200, Self.keys)
        try await other.refresh()
        other.clock.advance(by: .seconds(7 * 3600))
        other.transport.add(503, "")
        _ = try await other.refreshError()
        #expect(try other.state == .missing)
    }

    @Test("The session token is used again, and replaced once after 401")
    func sessionToken() async throws {
        let test = Self.instance()
        for body in ["FIRST", "role", Self.keys] { test.transport.add(200, body) }
        try await test.refresh()
        test.transport.add(401, "")
        for body in ["SECOND", "role", Self.keys] { test.transport.add(200, body) }

        try await test.refresh()

        let later = test.transport.requests.dropFirst(3)
        #expect(later.map(\.method) == [.get, .put, .get, .get])
        #expect(later.map { $0.headers["X-aws-ec2-metadata-token"] } == ["FIRST", nil, "SECOND", "SECOND"])
    }

    @Test("A second 401 is an error")
    func refusedSessionToken() async throws {
        let test = Self.instance()
        test.transport.add(200, "FIRST")
        test.transport.add(401, "")
        test.transport.add(200, "SECOND")
        test.transport.add(401, "")

        let error = try await test.refreshError()

        #expect(error.code == .upstreamRefused(status: 401))
        #expect(test.transport.requests.count == 4)
    }

    @Test(
        "An unusable response of the instance metadata service is reported",
        arguments: [
            (404, "", "instance profile"), (200, "", "no role"), (200, "..", "no role"),
        ])
    func noRole(status: Int, body: String, message: String) async throws {
        let test = Self.instance()
        test.transport.add(200, "SESSION")
        test.transport.add(status, body)

        #expect(try await test.refreshError().message.contains(message))
    }

    @Test(
        "Unusable keys of a metadata service are reported without their content",
        arguments: [
            (#"{"Code":"AssumeRoleUnauthorizedAccess"}"#, "code AssumeRoleUnauthorizedAccess"),
            (#"{"Code":"hidden secret"}"#, "(unreadable)"), ("hidden", "not a JSON object"),
            ("[]", "not a JSON object"),
            (#"{"AccessKeyId":"A","Token":"hidden"}"#, "no usable keys"),
            (#"{"AccessKeyId":"A","SecretAccessKey":"hidden","Expiration":"soon"}"#, "invalid Expiration"),
            (
                #"{"AccessKeyId":"A","SecretAccessKey":"hidden","Expiration":"2015-08-30T12:36:00Z"}"#,
                "expired at 2015-08-30T12:36:00.000Z"
            ),
        ])
    func unusableKeys(body: String, message: String) async throws {
        let test = Self.container(["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/v2/keys"])
        test.transport.add(200, body)

        let error = try await test.refreshError()

        #expect(error.message.contains(message.replacing("not a JSON object", with: "not a JSON object")))
        #expect(!error.message.contains("hidden"))
        #expect(try test.state == .missing)
    }

    @Test(
        "The base URL of the instance metadata service comes from the settings, then the environment",
        arguments: [
            ("http://127.0.0.1:1338/base/", "http://127.0.0.1:1338/base/latest/api/token"),
            (nil, "http://[fd00:ec2::254]/latest/api/token"),
        ])
    func instanceURL(setting: String?, url: String) async throws {
        let test = Self.instance(["AWS_EC2_METADATA_SERVICE_ENDPOINT": "http://[fd00:ec2::254]/"], url: setting)
        test.transport.add(200, "SESSION")

        _ = try await test.refreshError()

        #expect(test.transport.requests.first?.url == url)
        #expect(test.transport.requests.first?.allowsMetadataServices == true)
    }

    @Test("AWS_EC2_METADATA_DISABLED prevents requests to the instance metadata service")
    func disabled() async throws {
        let test = Self.instance(["AWS_EC2_METADATA_DISABLED": "True"])

        #expect(try await test.refreshError().message.contains("AWS_EC2_METADATA_DISABLED"))
        #expect(test.transport.requests.isEmpty)
    }

    @Test("A relative URI names the endpoint of ECS")
    func relativeURI() async throws {
        let test = Self.container(["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/v2/credentials/1?a=b"])
        test.transport.add(200, Self.keys)

        try await test.refresh()

        #expect(test.transport.requests.map(\.url) == ["http://169.254.170.2/v2/credentials/1?a=b"])
        #expect(test.transport.requests[0].allowsMetadataServices)
        #expect(test.transport.requests[0].headers["Authorization"] == nil)
        #expect(try test.state == .valid)
    }

    @Test("The token file of a container is read at each refresh")
    func tokenFile() async throws {
        let test = Self.container(
            [
                "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://169.254.170.23/v1/credentials",
                "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": "/var/run/token",
                "AWS_CONTAINER_AUTHORIZATION_TOKEN": "unused",
            ], files: ["/var/run/token": "first\n"])
        test.transport.add(200, Self.keys)
        test.transport.add(200, Self.keys)
        try await test.refresh()
        test.write("second\n", to: "/var/run/token")
        try await test.refresh()

        #expect(test.transport.requests.map { $0.headers["Authorization"] } == ["first", "second"])
        #expect(test.readPaths == ["/var/run/token", "/var/run/token"])
    }

    @Test("A token with a line break in its middle is not sent")
    func tokenWithLineBreak() async throws {
        let test = Self.container([
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://127.0.0.1/", "AWS_CONTAINER_AUTHORIZATION_TOKEN": "a\r\nb: c",
        ])

        _ = try await test.refreshError()

        #expect(test.transport.requests.isEmpty)
    }

    @Test(
        "Full URIs may name https, loopback and metadata addresses only",
        arguments: [
            ("https://keys.example/a", false), ("http://127.0.0.1:80/a", true),
            ("http://127.255.0.1/a", true), ("http://localhost:8080", true), ("http://[::1]/a", true),
            ("http://169.254.170.2/a", true), ("http://169.254.170.23/a", true),
            ("http://[fd00:ec2::23]/a", true), ("https://169.254.170.2/a", true),
            ("http://keys.example/a", nil), ("http://169.254.170.3/a", nil), ("http://10.0.0.1/a", nil),
            ("http://127.0.0.1.example/a", nil), ("http://127.0.0.256/", nil), ("http://127.1/", nil),
            ("http://127.0.0.1@10.0.0.1/", nil), ("http://[fd00:ec2::24]/a", nil), ("ftp://127.0.0.1/a", nil),
            ("/relative", nil), ("", nil),
        ] as [(String, Bool?)])
    func fullURI(url: String, isMetadataService: Bool?) async throws {
        let test = Self.container(["AWS_CONTAINER_CREDENTIALS_FULL_URI": url])

        _ = try await test.refreshError()

        #expect(test.transport.requests.first?.allowsMetadataServices == isMetadataService)
        #expect(test.transport.requests.first?.url == (isMetadataService == nil ? nil : url))
    }

    @Test("A container without endpoint is reported")
    func noEndpoint() async throws {
        let test = Self.container(["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "10.0.0.1/keys"])

        #expect(try await test.refreshError().message.contains("names no container credentials endpoint"))
        #expect(test.transport.requests.isEmpty)
    }
}
