package import CacheCore
import Foundation
package import Logging
import NIOPosix
package import NIOSSL
import ServiceLifecycle

/// Service that holds the TLS certificate and key, and reloads them when their files change.
///
/// It compares the files' content every `checkInterval`. New connections use the new certificate; open connections keep
/// theirs. If the new files are unusable, it logs an error and keeps the old certificate.
package final class CertificateReloader: Service {
    /// A TLS context together with the file contents that it was made from.
    private struct State {
        var context: NIOSSLContext
        /// The bytes of the certificate file, the key file and the file of the client authorities, if there is one.
        var bytes: [Data]
    }

    private static let checkInterval = Duration.seconds(10)

    private let settings: APISettings.TLS
    private let clock: any Clock<Duration>
    private let logger: Logger
    /// Guards the certificate in use.
    private let state: OrderedMutex<State>

    /// Loads the certificate and the key.
    ///
    /// Throws `.invalidField` with the setting's name if a file cannot be read, is not valid PEM, or if the key does
    /// not belong to the certificate.
    package init(
        _ settings: APISettings.TLS, clock: any Clock<Duration>, logger: Logger
    ) throws(CacheError) {
        self.settings = settings
        self.clock = clock
        self.logger = logger
        let bytes = try Self.read(settings)
        do {
            state = OrderedMutex(.leaf, State(context: try Self.context(bytes, settings), bytes: bytes))
        } catch {
            throw CacheError(
                .invalidField("listen.tls"), "The certificate or its key cannot be used: \(error).", cause: error)
        }
    }

    /// The TLS context for the next connection.
    package var context: NIOSSLContext { state.withLock { $0.context } }

    /// The time after which the first certificate of the chain is invalid; nil if it cannot be read.
    package var expiry: Timestamp? {
        // `init` has parsed the same bytes.
        let chain = state.withLock { try? NIOSSLCertificate.fromPEMBytes(Array($0.bytes[0])) }
        return chain?.first.map { Timestamp(milliseconds: Int64($0.notValidAfter) * 1000) }
    }

    /// Calls ``refresh()`` every `checkInterval` until graceful shutdown.
    package func run() async throws {
        await cancelWhenGracefulShutdown { [self] in
            while (try? await clock.sleep(for: Self.checkInterval)) != nil {  // fails only when cancelled
                await refresh()
            }
        }
    }

    /// Reads the files and replaces the certificate if they have changed and are usable; otherwise keeps it.
    ///
    /// The files are read on NIO's thread pool, because file reads block.
    package func refresh() async {
        do {
            let known = state.withLock { $0.bytes }
            let fresh = try await NIOThreadPool.singleton.runIfActive { [settings] () -> State? in
                let bytes = try Self.read(settings)
                return bytes == known ? nil : State(context: try Self.context(bytes, settings), bytes: bytes)
            }
            guard let fresh else { return }
            state.withLock { $0 = fresh }
            logger.info("certificate replaced")
        } catch {
            logger.error("certificate not replaced", metadata: ["error": "\(error)"])
        }
    }

    /// Whether connections can have a client certificate.
    package var asksClients: Bool { settings.clients != nil }

    /// Returns the contents of the files, as in ``State/bytes``. Throws `.invalidField` for an unreadable file.
    private static func read(_ settings: APISettings.TLS) throws(CacheError) -> [Data] {
        var contents: [Data] = []
        var files = [("certificateFile", settings.certificateFile), ("keyFile", settings.keyFile)]
        if let clients = settings.clients { files.append(("clientCAFile", clients.authoritiesFile)) }
        for (key, file) in files {
            do {
                contents.append(try Data(contentsOf: URL(fileURLWithPath: file)))
            } catch {
                throw CacheError(
                    .invalidField("listen.tls.\(key)"),
                    "The file \(file) cannot be read; check its path and permissions.", cause: error)
            }
        }
        return contents
    }

    /// Makes a server context for TLS 1.2 and later. The only ALPN protocol is `http/1.1`.
    ///
    /// A client certificate is verified against the client authorities only, never against those of the system.
    private static func context(_ bytes: [Data], _ settings: APISettings.TLS) throws -> NIOSSLContext {
        let chain = try NIOSSLCertificate.fromPEMBytes(Array(bytes[0])).map { NIOSSLCertificateSource.certificate($0) }
        let key = try NIOSSLPrivateKey(bytes: Array(bytes[1]), format: .pem)
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: chain, privateKey: .privateKey(key))
        configuration.minimumTLSVersion = .tlsv12
        configuration.applicationProtocols = ["http/1.1"]
        if let clients = settings.clients {
            let authorities = try NIOSSLCertificate.fromPEMBytes(Array(bytes[2]))
            guard !authorities.isEmpty else { throw NoAuthorities() }
            configuration.trustRoots = .certificates(authorities)
            configuration.certificateVerification =
                clients.isRequired ? .noHostnameVerification : .optionalVerification
        }
        return try NIOSSLContext(configuration: configuration)
    }
}

/// The error for a file of client authorities without a certificate.
private struct NoAuthorities: Error, CustomStringConvertible {
    var description: String { "listen.tls.clientCAFile contains no certificate" }
}
