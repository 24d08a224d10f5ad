import CacheTestKit
import Foundation
import NIOSSL

/// Certificates for tests, made by the program `openssl` in a temporary directory.
struct TestCertificates {
    /// The failure of a call of `openssl`.
    struct Failure: Error {
        var arguments: [String]
    }

    private let directory: TemporaryDirectory

    /// Makes an authority with the name `authority`.
    init(authorities: [String]) throws {
        directory = try TemporaryDirectory()
        for name in authorities {
            try openssl(
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
                "/CN=\(name)", "-keyout", path(name + ".key"), "-out", path(name + ".pem"), "-addext",
                "basicConstraints=critical,CA:TRUE")
        }
    }

    func path(_ name: String) -> String { directory.path(name) }

    /// Makes a certificate with a key: the files `name.pem` and `name.key`.
    ///
    /// - Parameters:
    ///   - subject: As `/O=Example/CN=player`.
    ///   - alternatives: As `DNS:player.example,URI:spiffe://example/player`; nil: none.
    func issue(
        _ name: String, subject: String, alternatives: String? = nil, authority: String, days: Int = 2
    ) throws {
        try openssl(
            "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", subject, "-utf8",
            "-keyout", path(name + ".key"), "-out", path(name + ".csr"))
        let extensions = (alternatives.map { "subjectAltName=\($0)\n" } ?? "") + "basicConstraints=CA:FALSE\n"
        try extensions.write(toFile: path(name + ".ext"), atomically: true, encoding: .utf8)
        try openssl(
            "x509", "-req", "-in", path(name + ".csr"), "-CA", path(authority + ".pem"), "-CAkey",
            path(authority + ".key"), "-CAcreateserial", "-days", "\(days)", "-extfile", path(name + ".ext"), "-out",
            path(name + ".pem"))
    }

    /// The context of a client that trusts the authority and presents the certificate; nil: none.
    func client(_ certificate: String?, trusting authority: String) throws -> NIOSSLContext {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.trustRoots = .certificates(try NIOSSLCertificate.fromPEMFile(path(authority + ".pem")))
        configuration.certificateVerification = .noHostnameVerification
        if let certificate {
            configuration.certificateChain = try NIOSSLCertificate.fromPEMFile(path(certificate + ".pem"))
                .map { .certificate($0) }
            configuration.privateKey = .privateKey(
                try NIOSSLPrivateKey(file: path(certificate + ".key"), format: .pem))
        }
        return try NIOSSLContext(configuration: configuration)
    }

    private func openssl(_ arguments: String...) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/openssl")
        process.arguments = arguments
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw Failure(arguments: arguments) }
    }
}
