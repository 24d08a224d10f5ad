import CacheAPI
import CacheCore
import EtcdClient
import Foundation
import Logging

/// Checks of the settings for other nodes of the fleet.
extension Doctor {
    /// Settings of the fleet that are valid, and dangerous or useless together.
    static func risks(of fleet: FleetSettings) -> [Finding] {
        guard !fleet.peers.isEmpty else { return [] }
        var risks: [Finding] = []
        let open = fleet.peers.filter { isUnencryptedInPublic($0) }
        if !open.isEmpty, !fleet.keys.isEmpty {
            let nodes = open.joined(separator: ", ")
            risks.append(
                .warning("fleet.peers", "The key is sent unencrypted over a public network to \(nodes); use https."))
        }
        if fleet.keys.isEmpty, fleet.peerCertificates.isEmpty {
            risks.append(
                .warning(
                    "fleet.peerCertificates",
                    "This node asks others and accepts none of them; set their names, or fleet.keyFile."))
        }
        return risks
    }

    /// Loads the certificate that this node presents to others, and checks its expiry.
    static func certificate(_ fleet: FleetSettings, at now: Timestamp) -> [Finding] {
        guard let file = fleet.certificateFile, let keyFile = fleet.certificateKeyFile else { return [] }
        let (subject, tls) = ("fleet.tls.certificateFile", APISettings.TLS(certificateFile: file, keyFile: keyFile))
        do throws(CacheError) {
            let certificates = try CertificateReloader(tls, clock: ContinuousClock(), logger: Logger(label: "larder"))
            return certificates.expiry.map { [certificate(subject, expiring: $0, at: now)] } ?? []
        } catch {
            return [.error(subject, error.message)]
        }
    }

    /// Asks each node whether it is alive, one after the other. Without a node the upstream serves, so that no answer is an
    /// error.
    static func nodes(_ settings: LarderSettings, over upstream: any Upstream) async -> [Finding] {
        let subject = "fleet.peers"
        var node = OriginSettings(baseURL: "")
        node.allowPrivateAddresses = true
        node.tls = settings.fleet.tls
        var findings: [Finding] = []
        for url in settings.fleet.peers {
            let finding = await ask(subject, url + "/health/live", node, over: upstream)
            findings.append(
                finding.level == .ok ? .ok(subject, "\(url) answers.") : .warning(subject, finding.sentence))
        }
        return findings
    }

    /// Reads the state of the fleet from each member of etcd, one after the other. The node starts without an answer, so that
    /// none is an error.
    static func etcd(_ fleet: FleetSettings, over upstream: any Upstream) async -> [Finding] {
        let (subject, state) = ("fleet.etcd.endpoints", "/larder/\(fleet.name)/state/")
        var findings: [Finding] = []
        for url in fleet.etcdEndpoints {
            var member = fleet.etcd
            member.endpoints = [url]
            do throws(CacheError) {
                let read = EtcdTransaction([.list(state, keysOnly: true)])
                let result = try await EtcdClient(member, over: upstream).commit(read)
                let user = member.user.map { " for the user \($0)" } ?? ""
                let keys = result.entries.first?.count ?? 0
                let found = "at revision \(result.revision), with \(keys) keys of the fleet"
                findings.append(.ok(subject, "\(url) answers\(user) \(found)."))
            } catch {
                findings.append(.warning(subject, error.sentence))
            }
        }
        return findings
    }

    /// Encrypted origins that no node shares, for a lack of https or of a client certificate.
    static func unshared(_ settings: LarderSettings) -> [Finding] {
        let fleet = settings.fleet
        let names = settings.origins.filter(\.settings.isEncrypted).map(\.name)
        let isShared = fleet.certificateFile != nil && fleet.peers.contains { $0.hasPrefix("https://") }
        guard !fleet.peers.isEmpty, !names.isEmpty, !isShared else { return [] }
        return [
            .ok(
                "fleet.tls.certificateFile",
                "Encrypted origins are not shared without https and certificates: \(names.joined(separator: ", ")).")
        ]
    }

    /// Whether requests to the URL are unencrypted and leave the private network. Only URLs with an address are judged,
    /// because the name of a node can have different addresses at different places.
    static func isUnencryptedInPublic(_ url: String) -> Bool {
        guard url.hasPrefix("http://"), let host = URLComponents(string: url)?.host else { return false }
        let bare = host.trimmingCharacters(in: ["[", "]"])
        var bytes = [UInt8](repeating: 0, count: 16)
        if inet_pton(AF_INET, bare, &bytes) == 1 { return AddressGuard.refusal(of: Array(bytes[..<4])) == nil }
        return inet_pton(AF_INET6, bare, &bytes) == 1 && AddressGuard.refusal(of: bytes) == nil
    }
}
