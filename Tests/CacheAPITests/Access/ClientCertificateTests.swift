@testable import CacheAPI
import CacheCore
import CacheTestKit
import NIOSSL
import ReaderAccess
import Testing

/// Readers that are known by their TLS client certificate.
@Suite(.timeLimit(.minutes(20))) struct ClientCertificateTests {
    /// A TLS service with the readers `common` (CN=player), `named` (a DNS name) and `workload` (a URI), and the token
    /// `boss`. The origin `media` is protected.
    private func run(
        isRequired: Bool, _ body: @Sendable @escaping (TestService, TestCertificates) async throws -> Void
    ) async throws {
        let certificates = try TestCertificates(authorities: ["authority", "stranger"])
        try certificates.issue(
            "server", subject: "/CN=localhost", alternatives: "DNS:localhost", authority: "authority")
        try certificates.issue("player", subject: "/O=Example/CN=player", authority: "authority")
        try certificates.issue(
            "named", subject: "/O=Example", alternatives: "DNS:Player.example,DNS:other.example",
            authority: "authority")
        try certificates.issue(
            "workload", subject: "/CN=none", alternatives: "URI:spiffe://example/player", authority: "authority")
        try certificates.issue("unknown", subject: "/CN=nobody", authority: "authority")
        try certificates.issue("forged", subject: "/CN=player", authority: "stranger")
        let directory = ReaderDirectory()
        directory.update(
            file: try TokensFile([
                "tokens": [
                    ["id": "boss", "scope": "admin", "sha256": .string(TokenDigest(of: "boss").hexDigits)],
                    ["id": "common", "scope": "read", "subjects": ["CN=player"]],
                    ["id": "named", "scope": "write", "subjects": ["DNS:player.example"]],
                    ["id": "workload", "scope": "admin", "subjects": ["URI:spiffe://example/player"]],
                ]
            ]))
        let tls = APISettings.TLS(
            certificateFile: certificates.path("server.pem"), keyFile: certificates.path("server.key"),
            clients: .init(authoritiesFile: certificates.path("authority.pem"), isRequired: isRequired))
        try await TestService.run(access: AccessRules(directory), tls: tls, change: { $0.access = .token }) {
            (service) async throws in
            service.upstream.serve("/a.mp4", LoopbackAsset(size: 1000))
            try await body(service, certificates)
        }
    }

    /// The statuses of requests on one connection; nil where the connection was closed.
    private static func statuses(
        _ service: TestService, _ context: NIOSSLContext, _ requests: [(String, String, HeaderList)]
    ) async throws -> [Int?] {
        guard let connection = try? await RawConnection(port: service.port, tls: context) else {
            return requests.map { _ in nil }
        }
        var statuses: [Int?] = []
        for (method, target, headers) in requests {
            try? await connection.request(method, target, headers)
            statuses.append(try await connection.response()?.status)
        }
        try? await connection.hangUp()
        return statuses
    }

    private static let content = "/o/media/a.mp4"

    @Test("A certificate is the token of its requests", arguments: [true, false])
    func aCertificateIsAToken(isRequired: Bool) async throws {
        try await run(isRequired: isRequired) { (service, certificates) async throws in
            let requests: [(String, String, HeaderList)] = [
                ("GET", Self.content, [:]), ("GET", Self.content, [:]), ("GET", Self.content, [:]),
                ("GET", "/v1/stats", [:]), ("POST", "/v1/purges", [:]), ("PUT", "/v1/origins/x", [:]),
            ]
            for (name, expected) in [
                ("player", [200, 200, 200, 200, 403, 403]), ("named", [200, 200, 200, 200, 415, 403]),
                ("workload", [200, 200, 200, 200, 415, 415]), ("unknown", [401, 401, 401, 401, 401, 401]),
            ] {
                let context = try certificates.client(name, trusting: "authority")
                #expect(try await Self.statuses(service, context, requests) == expected, "\(name)")
            }
            let forged = try certificates.client("forged", trusting: "authority")
            #expect(try await Self.statuses(service, forged, [requests[0]]) == [nil])
            // A line is written after its response was sent.
            let areNamed = try await eventually {
                let names = service.log.requests.filter { $0["path"] == Self.content }.compactMap { $0["token"] }
                return Set(names) == ["common", "named", "workload"]
            }
            #expect(areNamed)
        }
    }

    @Test("A token takes the place of the certificate")
    func aTokenTakesThePlaceOfTheCertificate() async throws {
        try await run(isRequired: true) { (service, certificates) async throws in
            let context = try certificates.client("player", trusting: "authority")
            let boss: HeaderList = ["Authorization": "Bearer boss"]
            let wrong: HeaderList = ["Authorization": "Bearer wrong"]
            let requests: [(String, String, HeaderList)] = [
                ("GET", Self.content, [:]), ("GET", Self.content, wrong), ("GET", Self.content, boss),
                ("POST", "/v1/scrubs", boss), ("POST", "/v1/scrubs", [:]),
            ]
            #expect(try await Self.statuses(service, context, requests) == [200, 401, 200, 415, 403])
        }
    }

    @Test("A connection without a certificate is refused if one is required")
    func aMissingCertificate() async throws {
        let boss: HeaderList = ["Authorization": "Bearer boss"]
        let requests: [(String, String, HeaderList)] = [("GET", Self.content, boss), ("GET", Self.content, [:])]
        for isRequired in [true, false] {
            try await run(isRequired: isRequired) { (service, certificates) async throws in
                let context = try certificates.client(nil, trusting: "authority")
                let found = try await Self.statuses(service, context, requests)
                #expect(found == (isRequired ? [nil, nil] : [200, 401]))
            }
        }
    }

    @Test("A page of another site cannot use the certificate of a browser for changes")
    func crossSiteRequestsAreRefused() async throws {
        try await run(isRequired: true) { (service, certificates) async throws in
            let context = try certificates.client("workload", trusting: "authority")
            let requests: [(String, String, HeaderList)] = [
                ("POST", "/v1/scrubs", ["Origin": "https://evil.example"]),
                ("POST", "/v1/scrubs", ["Origin": "https://evil.example", "Authorization": "Bearer boss"]),
            ]
            #expect(try await Self.statuses(service, context, requests) == [403, 415])
        }
    }

    @Test("Names are read from the certificate with their types")
    func namesAreRead() throws {
        let certificates = try TestCertificates(authorities: ["authority"])
        try certificates.issue(
            "a", subject: "/C=DE/O=Example/CN=plain name/CN=second/emailAddress=x@y.example",
            alternatives: "DNS:a.example,URI:spiffe://a/b,email:m@a.example,IP:127.0.0.1", authority: "authority")
        let names = try NIOSSLCertificate.fromPEMFile(certificates.path("a.pem"))[0].subjects
        #expect(
            names == [
                "CN=plain name", "CN=second", "DNS:a.example", "URI:spiffe://a/b", "EMAIL:m@a.example",
            ])
    }

    @Test("Malformed certificates have no names")
    func malformedCertificatesHaveNoNames() throws {
        let certificates = try TestCertificates(authorities: ["authority"])
        let bytes = try NIOSSLCertificate.fromPEMFile(certificates.path("authority.pem"))[0].toDERBytes()
        #expect(CertificateSubject.commonNames(inDER: bytes) == ["authority"])
        #expect(CertificateSubject.commonNames(inDER: []) == [])
        for count in 0..<bytes.count {
            #expect(CertificateSubject.commonNames(inDER: Array(bytes.prefix(count))) == [])
        }
        var altered = bytes
        for index in bytes.indices {
            altered[index] ^= 0xFF
            _ = CertificateSubject.commonNames(inDER: altered)  // it must not trap
            altered[index] = bytes[index]
        }
    }
}
