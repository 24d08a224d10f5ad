package import CacheCore
import Foundation
package import Logging
import NIOPosix
package import NIOSSL
import ServiceLifecycle
import Synchronization

/// The certificate and key in use; looks at their files now and then, and takes new ones for new connections.
package final class CertificateShelf: Service {
    private struct State {
        var context: NIOSSLContext
        var bytes: [Data]
    }

    private let settings: APISettings.TLS
    private let clock: any Clock<Duration>
    private let logger: Logger
    private let state: Mutex<State>

    /// Throws `.invalidField` with the configuration key where the files cannot be read or do not fit together.
    package init(
        _ settings: APISettings.TLS, clock: any Clock<Duration>, logger: Logger
    ) throws(CacheError) {
        self.settings = settings
        self.clock = clock
        self.logger = logger
        let bytes = try Self.read(settings)
        do {
            state = Mutex(State(context: try Self.context(bytes), bytes: bytes))
        } catch {
            throw CacheError(
                .invalidField("listen.tls"), "The certificate or its key cannot be used: \(error).", cause: error)
        }
    }

    package var context: NIOSSLContext { state.withLock { $0.context } }

    /// Looks at the files until the service ends; what cannot be used is logged, and the old ones stay.
    package func run() async throws {
        await cancelWhenGracefulShutdown { [self] in
            while (try? await clock.sleep(for: settings.checkInterval)) != nil {  // fails only when cancelled
                await refresh()
            }
        }
    }

    /// Takes the files' present content, if it is new and good.
    package func refresh() async {
        do {
            let known = state.withLock { $0.bytes }
            let fresh = try await NIOThreadPool.singleton.runIfActive { [settings] () -> State? in
                let bytes = try Self.read(settings)
                return bytes == known ? nil : State(context: try Self.context(bytes), bytes: bytes)
            }
            guard let fresh else { return }
            state.withLock { $0 = fresh }
            logger.info("certificate replaced")
        } catch {
            logger.error("certificate not replaced", metadata: ["error": "\(error)"])
        }
    }

    private static func read(_ settings: APISettings.TLS) throws(CacheError) -> [Data] {
        var contents: [Data] = []
        for (key, file) in [("certificateFile", settings.certificateFile), ("keyFile", settings.keyFile)] {
            do {
                contents.append(try Data(contentsOf: URL(fileURLWithPath: file)))
            } catch {
                throw CacheError(
                    .invalidField("listen.tls.\(key)"), "The file \(file) cannot be read.", cause: error)
            }
        }
        return contents
    }

    private static func context(_ bytes: [Data]) throws -> NIOSSLContext {
        let chain = try NIOSSLCertificate.fromPEMBytes(Array(bytes[0])).map { NIOSSLCertificateSource.certificate($0) }
        let key = try NIOSSLPrivateKey(bytes: Array(bytes[1]), format: .pem)
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: chain, privateKey: .privateKey(key))
        configuration.minimumTLSVersion = .tlsv12
        configuration.applicationProtocols = ["http/1.1"]
        return try NIOSSLContext(configuration: configuration)
    }
}
