import CacheAPI
import CacheCore
import Foundation
import Logging

/// Checks of the listener, its certificate, and risky combinations of settings.
extension Doctor {
    /// Whether the start can listen on the address. An address in use is expected while a process holds the store.
    static func listener(_ listen: ListenSettings, holder: String?) -> [Finding] {
        let subject = "listen.address"
        switch BindTrial(listen.address).outcome {
        case .free: return [.ok(subject, "\(listen.address) is free.")]
        case .failed(let reason):
            return [.error(subject, "A start cannot listen on \(listen.address): \(reason). Choose another address.")]
        case .used:
            guard holder != nil else {
                return [
                    .error(subject, "Another process listens on \(listen.address); stop it, or choose another address.")
                ]
            }
            let probe = HealthProbe(listen, path: "/health/live")
            do throws(HealthProbe.Refusal) {
                guard try probe.ask(within: .seconds(4)) == 200 else { throw HealthProbe.Refusal("is not alive") }
                return [.ok(subject, "A running service listens on \(listen.address).")]
            } catch {
                return [.warning(subject, "\(listen.address) \(error.reason); check the log of the running service.")]
            }
        }
    }

    /// Loads the certificate as the start does, and checks its expiry.
    static func certificate(_ listen: ListenSettings, at now: Timestamp) -> [Finding] {
        guard let tls = listen.tls else { return [] }
        do throws(CacheError) {
            let certificates = try CertificateReloader(tls, clock: ContinuousClock(), logger: Logger(label: "larder"))
            return certificates.expiry.map { [certificate("listen.tls.certificateFile", expiring: $0, at: now)] } ?? []
        } catch {
            return [Finding(error, of: "listen.tls")]
        }
    }

    static func certificate(_ subject: String, expiring end: Timestamp, at now: Timestamp) -> Finding {
        let date = RFC3339.format(end)
        let fortnight: Int64 = 14 * 86_400_000
        if end <= now { return .error(subject, "The certificate has expired at \(date); renew it.") }
        if end.milliseconds - now.milliseconds < fortnight {
            return .warning(subject, "The certificate expires at \(date); renew it.")
        }
        return .ok(subject, "The certificate expires at \(date).")
    }

    /// Settings that are valid, and dangerous together.
    static func risks(of settings: LarderSettings) -> [Finding] {
        let (access, isRemote) = (settings.access, !settings.listen.address.isLoopback)
        var risks: [Finding] = []
        if isRemote, access.allowUnauthenticated {
            risks.append(
                .warning(
                    "access.allowUnauthenticated", "Other machines can use all calls without a token; set a token."))
        } else if isRemote, settings.listen.tls == nil {
            risks.append(
                .warning(
                    "listen.tls.certificateFile",
                    "Other machines send their tokens unencrypted; set a certificate, or listen for a proxy only."))
        }
        if !access.hasReaders, settings.cors.allowedOrigins.contains("*") {
            risks.append(
                .warning("cors.allowedOrigins", "Pages of all sites can use the API without a token; name the sites."))
        }
        for (key, token) in [("access.token", access.token), ("access.readToken", access.readToken)] {
            guard let token, token.exposed.utf8.count < 16 else { continue }
            risks.append(.warning(key, "The token is short, so it can be guessed; use openssl rand -hex 32."))
        }
        if let url = access.jwt.keysURL, url.hasPrefix("http://") {
            risks.append(.warning("access.jwt.jwksURL", "The keys are fetched unencrypted; use https."))
        }
        if settings.urlOrigin.allowPrivateAddresses, !settings.upstream.allowedHosts.isEmpty {
            risks.append(
                .warning(
                    "upstream.allowPrivateAddresses",
                    "Absolute URLs can lead to services of the internal network; permit it for single origins only."))
        }
        if settings.policy.capacityBytes == nil, settings.policy.minFreeDiskBytes == 0 {
            risks.append(.warning("policy.capacity", "The store can fill the whole disk; set policy.minFreeDisk."))
        }
        for origin in settings.origins { risks += Self.risks(of: origin) }
        return risks + Self.risks(of: settings.fleet)
    }

    private static func risks(of origin: Origin) -> [Finding] {
        let (settings, key) = (origin.settings, "origins.\(origin.name)")
        var risks: [Finding] = []
        if !settings.tls.verify {
            risks.append(
                .warning("\(key).tls.verify", "The certificate of the upstream is not verified; set tls.caFile."))
        }
        let hasCredentials = settings.credentialsFile != nil || settings.headers["Authorization"] != nil
        if hasCredentials, settings.baseURL.hasPrefix("http://"), !settings.allowPrivateAddresses {
            risks.append(.warning("\(key).baseURL", "The credentials are sent unencrypted; use https."))
        }
        return risks
    }
}

/// An attempt to bind an address, without a listener.
struct BindTrial {
    enum Outcome: Hashable {
        case free
        /// Another process listens.
        case used
        case failed(String)
    }

    let outcome: Outcome

    init(_ address: ListenAddress) {
        switch address {
        case .host(let host, let port): outcome = Self.bind(host, port)
        case .unix(let path):
            if let socket = UnixSocketFile.connect(to: path) {
                close(socket)
                outcome = .used
            } else {
                let parent = URL(fileURLWithPath: path).deletingLastPathComponent().path
                outcome =
                    FilePermissions(of: parent)?.isUsable == true
                    ? .free : .failed("\(parent) cannot be changed by this user")
            }
        }
    }

    private static func bind(_ host: String, _ port: Int) -> Outcome {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        hints.ai_flags = AI_PASSIVE
        var found: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(host, String(port), &hints, &found) == 0, let candidate = found else {
            return .failed("the name does not resolve to an address")
        }
        defer { freeaddrinfo(found) }
        let first = candidate.pointee
        let descriptor = socket(first.ai_family, first.ai_socktype | Int32(SOCK_CLOEXEC.rawValue), first.ai_protocol)
        guard descriptor >= 0 else { return .failed(String(cString: strerror(errno))) }
        defer { close(descriptor) }
        // As the server does: connections of an earlier process do not block the address.
        var isReused: Int32 = 1
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &isReused, socklen_t(MemoryLayout<Int32>.size))
        guard Glibc.bind(descriptor, first.ai_addr, first.ai_addrlen) != 0 else { return .free }
        return errno == EADDRINUSE ? .used : .failed(String(cString: strerror(errno)))
    }
}
