import CacheCore
import Testing
import UpstreamAccounts

@Suite struct KeySourceTests {
    private static let file = """
        # keys of two accounts
        [default]
        aws_access_key_id = AKIADEFAULT
        aws_secret_access_key = secret/default

        [profile media]
        AWS_ACCESS_KEY_ID=AKIAMEDIA
        aws_secret_access_key= secret=media
        aws_session_token =token+media
        s3 =
          aws_access_key_id = AKIANESTED
        ; comment
        [process]
        credential_process = /usr/bin/true
        [half]
        aws_access_key_id = AKIAHALF
        """

    /// The access key ID in the `Authorization` field.
    private static func keyID(_ request: AuthorizedRequest) -> Substring? {
        request.headers["Authorization"]?.split(separator: "Credential=").last?.prefix { $0 != "/" }
    }

    private static func fileAccount(_ profile: String, _ text: String = file) -> TestAccount {
        TestAccount(files: ["aws/credentials": text]) {
            $0.kind = .s3
            $0.credentials = .file
            $0.file = "aws/credentials"
            $0.profile = profile
        }
    }

    @Test("Static keys sign requests and have no expiry")
    func staticKeys() async throws {
        let test = TestAccount {
            $0.kind = .s3
            $0.credentials = .static
            $0.accessKeyID = "AKIASTATIC"
            $0.secretAccessKey = "secret"
        }
        #expect(try test.state == .missing)
        #expect(throws: CacheError.self) { try test.authorize() }

        try await test.refresh()

        #expect(Self.keyID(try test.authorize()) == "AKIASTATIC")
        test.clock.advance(by: .seconds(1_000_000))
        #expect(try test.state == .valid)
        #expect(test.transport.requests.isEmpty)
    }

    @Test("The environment gives keys and a session token")
    func environment() async throws {
        let test = TestAccount(environment: [
            "AWS_ACCESS_KEY_ID": "AKIAENV", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "token",
        ]) { $0.kind = .s3 }
        try await test.refresh()

        let request = try test.authorize()

        #expect(Self.keyID(request) == "AKIAENV")
        #expect(request.headers["X-Amz-Security-Token"] == "token")
        #expect(
            request.headers["Authorization"]?.contains(
                "SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token,") == true)
    }

    @Test("An environment without keys is reported with the names of the variables")
    func emptyEnvironment() async throws {
        let test = TestAccount { $0.kind = .s3 }

        let error = try await test.refreshError()

        #expect(error.message.contains("AWS_ACCESS_KEY_ID"))
        #expect(try test.account.status.error == error.message)
    }

    @Test(
        "A profile of the credentials file gives keys",
        arguments: [("default", "AKIADEFAULT", nil), ("media", "AKIAMEDIA", "token+media")])
    func profile(name: String, keyID: String, token: String?) async throws {
        let test = Self.fileAccount(name)
        try await test.refresh()

        let request = try test.authorize()

        #expect(Self.keyID(request) == keyID[...])
        #expect(request.headers["X-Amz-Security-Token"] == token)
    }

    @Test("A file with a byte order mark and CRLF is read")
    func windowsFile() async throws {
        let text = "\u{FEFF}[default]\r\naws_access_key_id = AKIACRLF\r\naws_secret_access_key = secret\r\n"
        let test = Self.fileAccount("default", text)
        try await test.refresh()

        #expect(Self.keyID(try test.authorize()) == "AKIACRLF")
    }

    @Test(
        "Files as AWS tools read them give keys (AWS SDKs and Tools Reference Guide, \"Format of the config file\")",
        arguments: [
            "  [default]\n    aws_access_key_id = AKIA\n    aws_secret_access_key = secret\n",
            "[default]\n\taws_access_key_id = AKIA\n  aws_secret_access_key = secret\n",
            "[default]\naws_access_key_id = AKIA\naws_secret_access_key = secret\naws_session_token =\n",
            "[default]\naws_session_token = \naws_access_key_id = AKIA\naws_secret_access_key = secret",
            "[default] # x\naws_access_key_id = AKIA # first\naws_secret_access_key = secret\t; second = 1\n",
            "[default]\n  s3 =\n    aws_access_key_id = AKIANESTED\n  aws_access_key_id = AKIA\n  aws_secret_access_key = secret\n",
            "[default]\naws_access_key_id: AKIA\naws_secret_access_key: secret\n",
            "[other]\nx =\n[default]\n  aws_access_key_id = AKIA\n  aws_secret_access_key = secret\n",
            "\u{FEFF}\r\n  # keys\r\n[default]\r\n  aws_access_key_id = AKIA\r\n  aws_secret_access_key = secret\r\n",
        ])
    func otherTools(_ text: String) async throws {
        let test = Self.fileAccount("default", text)
        try await test.refresh()

        let request = try test.authorize()

        #expect(Self.keyID(request) == "AKIA")
        #expect(request.headers["X-Amz-Security-Token"] == nil)
    }

    @Test("A key with # is not cut, because no blank stands before it")
    func keyWithMark() async throws {
        let test = Self.fileAccount("default", "[default]\naws_access_key_id = AKIA#1;x\naws_secret_access_key = s#\n")
        try await test.refresh()
        #expect(Self.keyID(try test.authorize()) == "AKIA#1;x")
    }

    @Test(
        "A profile without keys is reported",
        arguments: [
            ("absent", "no section [absent]"), ("process", "credential_process, which is not supported"),
            ("half", "no usable keys"),
        ])
    func unusableProfile(name: String, message: String) async throws {
        let error = try await Self.fileAccount(name).refreshError()

        #expect(error.message.contains(message))
        #expect(!error.message.contains("AKIA"))
    }

    @Test("A credentials file is read again every minute, and a rotated key is used")
    func rotatedFile() async throws {
        let test = Self.fileAccount("default")
        try await test.refresh()
        let first = try test.authorize()
        test.clock.advance(by: .seconds(59))
        #expect(try test.state == .valid)
        test.clock.advance(by: .seconds(1))
        #expect(try test.state == .refreshSoon)

        try await test.refresh()
        #expect(try test.authorize().revision == first.revision)
        #expect(try test.account.status.refreshes == 1)
        test.write("[default]\naws_access_key_id=AKIANEW\naws_secret_access_key=new\n", to: "aws/credentials")
        try await test.refresh()

        let second = try test.authorize()
        #expect(Self.keyID(second) == "AKIANEW")
        #expect(second.revision > first.revision)
        #expect(try test.account.status.refreshes == 2)
        #expect(try test.state == .valid)
    }

    @Test("After an unreadable file the earlier keys stay in use")
    func unreadableFile() async throws {
        let test = Self.fileAccount("default")
        try await test.refresh()
        test.write("", to: "aws/credentials")
        test.clock.advance(by: .seconds(60))

        _ = try await test.refreshError()

        #expect(Self.keyID(try test.authorize()) == "AKIADEFAULT")
        #expect(try test.account.status.failures == 1)
    }

    @Test("Fields that S3 interprets are signed, and others are not")
    func signedFields() async throws {
        let test = Self.fileAccount("default")
        try await test.refresh()

        let request = try test.authorize(
            "GET", "https://media.example/k",
            ["Range": "bytes=0-9", "X-Amz-Request-Payer": "requester", "User-Agent": "x", "Authorization": "Basic y"])

        #expect(
            request.headers["Authorization"]?.contains(
                "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date;x-amz-request-payer,") == true)
        #expect(request.headers["X-Amz-Content-Sha256"] == "UNSIGNED-PAYLOAD")
        #expect(request.headers["Range"] == nil)
    }

    @Test("Another range has another signature")
    func signedRange() async throws {
        let test = Self.fileAccount("default")
        try await test.refresh()

        let first = try test.authorize("GET", "https://media.example/k", ["Range": "bytes=0-9"])
        let second = try test.authorize("GET", "https://media.example/k", ["Range": "bytes=10-19"])

        #expect(first.signature != second.signature)
    }
}
