import CacheAPI
import CacheCore
import CacheEngine
import CacheStore
import CurlUpstream
import Foundation
import Logging

/// Checks a configuration and the machine without a change of either, also beside a running service.
///
/// The checks call the functions of the start, so that both have the same errors. Warnings are about settings and limits
/// with which the service starts.
struct Doctor {
    let input: SettingsInput
    /// Whether each upstream is asked.
    let isOnline: Bool

    /// The time within which an upstream must answer.
    private static let timeout = Duration.seconds(5)

    /// All findings, in the order of the checks. Invalid settings end the checks that depend on them.
    func examine() async -> DoctorReport {
        let files = ProcessLimits.prepare()
        var findings = Self.machine(files)
        findings += SettingsSchema.strangers(in: input.environment.keys).map { .warning("environment", $0 + ".") }
        let settings: LarderSettings
        do throws(SettingsError) {
            let read = try input.read()
            settings = read.settings
            findings += configurationFile(read.content)
        } catch {
            return DoctorReport(findings: findings + [Finding(error)])
        }
        findings += Self.faults([settings.checkExposure, settings.checkCAFiles])
        findings += Self.risks(of: settings)
        let store = Self.dataDirectory(settings.dataDirectory)
        findings += store.findings
        findings += Self.space(for: settings)
        findings += Self.secretFiles(of: settings)
        findings += Self.listener(settings.listen, holder: store.holder)
        findings += Self.certificate(settings.listen, at: SystemWallClock().now())
        findings += Self.certificate(settings.fleet, at: SystemWallClock().now())
        findings += Self.unshared(settings)
        findings += await readers(settings.access)
        findings += await masterKeys(settings)
        if isOnline { findings += await upstreams(settings, files) }
        return DoctorReport(findings: findings)
    }

    /// The errors that `checks` throw.
    private static func faults(_ checks: [() throws(SettingsError) -> Void]) -> [Finding] {
        checks.compactMap { check in
            do throws(SettingsError) {
                try check()
                return nil
            } catch {
                return Finding(error)
            }
        }
    }

    private func configurationFile(_ content: ConfigurationFile?) -> [Finding] {
        guard let file = input.file else {
            return [.ok("configuration", "There is no configuration file.")]
        }
        guard content?.isComplete != false else {
            return [.warning(file, "Its last line has no line feed, so a reload refuses the file; add one.")]
        }
        if FilePermissions(of: file)?.isWritableByOthers == true {
            return [.warning(file, "All users can change the file; remove the permission with chmod o-w.")]
        }
        return [.ok("configuration", "\(file) is valid.")]
    }

    /// Reads the tokens, the key set and the signing keys as the start does. The key set of a URL is read online only.
    private func readers(_ access: AccessSettings) async -> [Finding] {
        guard access.tokensFile != nil || access.jwt.keysFile != nil || access.signing.keysDirectory != nil else {
            return []
        }
        var logger = Logger(label: "larder")
        logger.logLevel = .critical
        let record = ReaderSources.Record(load: { _ in nil }, save: { _, _ in })
        do throws(CacheError) {
            _ = try ReaderSources(
                access, clock: ContinuousClock(), wallClock: SystemWallClock(), logger: logger, record: record
            ) { (_) async throws(CacheError) in [] }
            return [.ok("access", "The files with tokens and keys are valid.")]
        } catch {
            return [Finding(error, of: "access")]
        }
    }

    /// Reads the master keys as the start does.
    private func masterKeys(_ settings: LarderSettings) async -> [Finding] {
        guard settings.encryption.hasKeys else { return [] }
        do throws(CacheError) {
            let keys = try await MasterKeyReader(settings: settings.encryption).readInBackground(used: [])
            try settings.checkMasterKey(keys)
            let ids = keys.keys.map(\.id).sorted().joined(separator: ", ")
            return [
                keys.keys.isEmpty
                    ? .warning("encryption", "There is no master key.") : .ok("encryption", "Master keys: \(ids).")
            ]
        } catch {
            return [Finding(error, of: "encryption")]
        }
    }

    /// Asks each configured upstream and the source of the key set, all at once.
    private func upstreams(_ settings: LarderSettings, _ files: OpenFileBudget) async -> [Finding] {
        var logger = Logger(label: "larder")
        logger.logLevel = .critical
        let pool = CurlWorkerPool(settings: settings.pool(files), clock: ContinuousClock(), logger: logger)
        defer { pool.shutdown() }
        var targets: [(subject: String, url: String, settings: OriginSettings)] = []
        for origin in settings.origins {
            targets.append(("origins.\(origin.name)", origin.settings.baseURL, origin.settings))
            targets += origin.settings.mirrors.map { ("origins.\(origin.name).mirrors", $0, origin.settings) }
        }
        if let url = settings.access.jwt.keysURL {
            var own = OriginSettings(baseURL: url)
            own.allowPrivateAddresses = true
            targets.append(("access.jwt.jwksURL", url, own))
        }
        let nodes = await Self.nodes(settings, over: pool) + Self.etcd(settings.fleet, over: pool)
        let answers = await targets.mapConcurrently(atMost: targets.count) { target in
            await Self.ask(target.subject, target.url, target.settings, over: pool)
        }
        return answers + nodes
    }

    /// The finding for the response to one HEAD request. Any response below 500 proves that the upstream is reachable,
    /// because a base URL need not be a file.
    static func ask(
        _ subject: String, _ url: String, _ settings: OriginSettings, over upstream: any Upstream
    ) async -> Finding {
        do throws(CacheError) {
            let status = try await ReachabilityProbe.status(of: url, settings, over: upstream, timeout: timeout)
            return status < 500
                ? .ok(subject, "The upstream answers a HEAD request with status \(status).")
                : .warning(subject, "The upstream answers a HEAD request with status \(status); check its log.")
        } catch {
            return Finding(error, of: subject)
        }
    }
}
