import CacheCore
import Testing

@Suite struct OriginAuthFaultTests {
    struct Case: Sendable {
        let key: String?
        let message: String
        let change: @Sendable (inout OriginAuth) -> Void

        init(_ key: String?, _ message: String = "", _ change: @escaping @Sendable (inout OriginAuth) -> Void) {
            self.key = key
            self.message = message
            self.change = change
        }
    }

    @Test("Usable settings have no fault", arguments: usable.indices)
    func hasNoFault(index: Int) {
        var settings = OriginAuth()
        Self.usable[index](&settings)
        #expect(settings.fault?.message == nil)
    }

    @Test("The first unusable member is named", arguments: unusable.indices)
    func namesTheFault(index: Int) {
        let unusable = Self.unusable[index]
        var settings = OriginAuth()
        settings.kind = .s3
        unusable.change(&settings)
        #expect(settings.fault?.key == unusable.key)
        #expect(settings.fault?.message.contains(unusable.message) == true)
        #expect(settings.fault?.message.contains("hidden") == false)
    }

    private static let role = "arn:aws:iam::123456789012:role/media"

    static let usable: [@Sendable (inout OriginAuth) -> Void] = [
        { _ in }, { $0.kind = .s3 },
        {
            $0.kind = .s3
            $0.credentials = .static
            ($0.accessKeyID, $0.secretAccessKey) = ("A", "s")
            $0.region = "auto"
        },
        {
            $0.kind = .s3
            $0.credentials = .file
            $0.file = "aws/credentials"
        },
        {
            $0.kind = .s3
            $0.credentials = .container
            $0.metadataURL = "http://169.254.170.23/v1"
        },
        {
            $0.kind = .s3
            $0.credentials = .instance
            $0.metadataURL = "http://[::1]:1338"
        },
        {
            $0.kind = .s3
            $0.credentials = .webIdentity
        },
        {
            $0.kind = .s3
            $0.credentials = .assumeRole
            $0.source = .static
            ($0.accessKeyID, $0.secretAccessKey, $0.sessionToken) = ("A", "s", "t")
            ($0.roleARN, $0.externalID, $0.stsURL) = (role, "ext", "http://127.0.0.1:5000/")
        },
        {
            $0.kind = .oauth2
            $0.grant = .refreshToken
            ($0.file, $0.tokenURL, $0.scope) = ("client.json", "https://a.example/token?v=1", "a b")
            $0.scheme = .oauth
        },
        {
            $0.kind = .sas
            $0.file = "sas"
        },
    ]

    static let unusable: [Case] = [
        Case("type", "auth.type is required") {
            $0.kind = nil
            $0.file = "a"
        },
        Case("region", "letters") { $0.region = "a/b" }, Case("service", "letters") { $0.service = "" },
        Case("accessKeyId", "auth.accessKeyId is required with credentials static.") { $0.credentials = .static },
        Case("secretAccessKey", "required") {
            $0.credentials = .static
            $0.accessKeyID = "A"
        },
        Case("secretAccessKey", "ASCII") {
            $0.credentials = .static
            ($0.accessKeyID, $0.secretAccessKey) = ("A", "hidden ")
        },
        Case("secretAccessKey", "credentials static only") { $0.secretAccessKey = "hidden" },
        Case("sessionToken", "credentials static only") {
            $0.credentials = .assumeRole
            ($0.roleARN, $0.sessionToken) = (role, "hidden")
        },
        Case("file", "auth.file is required with credentials file.") { $0.credentials = .file },
        Case("file", "required with credentials file") {
            $0.credentials = .assumeRole
            ($0.source, $0.roleARN) = (.file, role)
        },
        Case("file", "credentialsDirectory") {
            $0.credentials = .file
            $0.file = "../a"
        },
        Case("file", "credentialsDirectory") {
            $0.credentials = .webIdentity
            $0.file = "/a"
        },
        Case("file", "not used with credentials environment") { $0.file = "a" },
        Case("roleArn", "auth.roleArn is required with credentials assumeRole.") { $0.credentials = .assumeRole },
        Case("roleArn", "resource name") {
            $0.credentials = .assumeRole
            $0.roleARN = "media"
        },
        Case("roleArn", "only") { $0.roleARN = role },
        Case("roleSessionName", "2 to 64") { $0.roleSessionName = "a b" },
        Case("roleSessionName", "2 to 64") { $0.roleSessionName = "a" },
        Case("externalId", "assumeRole only") {
            $0.credentials = .webIdentity
            $0.externalID = "ext"
        },
        Case("externalId", "2 to 1224") {
            $0.credentials = .assumeRole
            ($0.roleARN, $0.externalID) = (role, "a")
        },
        Case("source", "another source") { $0.source = .assumeRole },
        Case("stsURL", "https") { $0.stsURL = "http://sts.example" },
        Case("stsURL", "https") { $0.stsURL = "https://user@sts.example" },
        Case("metadataURL", "container and instance") { $0.metadataURL = "http://127.0.0.1" },
        Case("metadataURL", "loopback and metadata") {
            $0.credentials = .instance
            $0.metadataURL = "http://10.0.0.1"
        },
        Case("grant", "not used with type s3") { $0.grant = .jwtBearer },
        Case("tokenURL", "not used with type s3") { $0.tokenURL = "https://a.example" },
        Case("file", "auth.file is required with type oauth2.") { $0.kind = .oauth2 },
        Case("tokenURL", "https") {
            $0.kind = .oauth2
            ($0.file, $0.tokenURL) = ("a", "http://a.example")
        },
        Case("scope", "ASCII") {
            $0.kind = .oauth2
            ($0.file, $0.scope) = ("a", "é")
        },
        Case("audience", "ASCII") {
            $0.kind = .oauth2
            ($0.file, $0.audience) = ("a", "")
        },
        Case("secretAccessKey", "not used with type oauth2") {
            $0.kind = .oauth2
            ($0.file, $0.secretAccessKey) = ("a", "hidden")
        },
        Case("file", "auth.file is required with type sas.") { $0.kind = .sas },
        Case("scheme", "not used with type sas") {
            $0.kind = .sas
            ($0.file, $0.scheme) = ("a", .oauth)
        },
        Case("stsURL", "not used with type sas") {
            $0.kind = .sas
            ($0.file, $0.stsURL) = ("a", "https://a.example")
        },
    ]
}
