import CacheAPI
import CacheCore
import Testing

@testable import LarderServer

/// Comparison of settings, and the settings that need a restart.
@Suite struct SettingsChangeTests {
    private static func settings(_ flags: [(name: String, text: String)]) throws -> LarderSettings {
        try LarderSettings(flags: flags)
    }

    /// A value other than the default for each setting that only a start applies.
    private static let fixed = [
        "listen.address": "127.0.0.1:1", "listen.socketMode": "0600",
        "listen.tls.certificateFile": "c.pem", "listen.tls.keyFile": "k.pem", "listen.tls.clientCAFile": "ca.pem",
        "listen.tls.clientAuthentication": "optional", "listen.fastPath": "false",
        "listen.proxyProtocol": "required", "listen.trustedProxies": "127.0.0.1",
        "listen.clientAddressFrom": "forwarded",
        "dataDirectory": "d", "credentialsDirectory": "c", "fallbackDirectory": "f", "log.format": "json",
        "log.fields": "ecs", "metrics.tokens": "player",
        "log.access": "off", "dashboard.enabled": "false", "jobs.concurrency": "3", "scrub.interval": "7d",
        "scrub.bytesPerSecond": "1MiB", "telemetry.traces.endpoint": "http://127.0.0.1/v1/traces",
        "telemetry.traces.headersFile": "h", "telemetry.traces.sampleRatio": "0.5", "telemetry.traces.timeout": "3s",
        "upstream.workers": "3", "upstream.dns.maxAge": "3s",
        "upstream.connectionMaxAge": "3s", "limits.maxConnections": "3", "limits.drainTimeout": "3s",
        "limits.shutdownDelay": "3s", "fleet.leaveTimeout": "3s",
        "fleet.etcd.endpoints": "http://127.0.0.1:2379", "fleet.etcd.caFile": "ca", "fleet.etcd.certificateFile": "c",
        "fleet.etcd.keyFile": "k", "fleet.etcd.credentialsFile": "u", "fleet.name": "f", "fleet.node": "n",
        "fleet.advertise": "http://127.0.0.1:8080", "fleet.maxLag": "30s", "fleet.catchUp": "serve",
        "fleet.router": "http://127.0.0.1:8080",
    ]

    @Test("A setting without reload keeps the running value and needs a restart")
    func fixedSettingsKeepTheRunningValue() throws {
        let running = LarderSettings()
        let table = LarderSettings.settings.filter { !$0.isReloadable }
        #expect(Set(table.map(\.key)) == Set(Self.fixed.keys))
        for setting in table {
            var changed = running
            let text = try #require(Self.fixed[setting.key])
            try setting.parse(setting.isList ? .list([text]) : .scalar(text), &changed)

            #expect(changed != running, "\(setting.key)")
            #expect(changed.keepingFixed(of: running) == running, "\(setting.key)")
            #expect(running.keepingFixed(of: changed) == changed, "\(setting.key)")
            #expect(changed.needingRestart(from: running) == [setting.key])
        }
    }

    @Test("A reloadable setting is kept as read, and needs no restart")
    func reloadableSettingsAreKept() throws {
        let running = LarderSettings()
        let changed = try Self.settings([
            ("upstream.maxTransfers", "3"), ("access.token", "abcdefgh"), ("log.level", "debug"),
            ("policy.capacity", "1GiB"), ("policy.tagQuotas.a.max", "1GiB"), ("origins.a.baseURL", "http://a.example"),
            ("limits.media.depth", "5"), ("cors.allowedOrigins", "*"),
        ])
        #expect(changed.keepingFixed(of: running) == changed)
        #expect(changed.needingRestart(from: running) == [])
    }

    @Test("Equal settings have no changed keys")
    func equalSettingsHaveNoChangedKeys() throws {
        let flags = [("access.token", "abcdefgh"), ("origins.a.baseURL", "http://a.example")]
        #expect(try Self.settings(flags).changedKeys(since: Self.settings(flags)) == [])
    }

    @Test(
        "A changed setting is named",
        arguments: [
            ([("upstream.maxTransfers", "3")], [("upstream.maxTransfers", "4")], ["upstream.maxTransfers"]),
            ([("access.token", "abcdefgh")], [("access.token", "abcdefgi")], ["access.token"]),
            ([("access.readToken", "abcdefgh")], [], ["access.readToken"]),
            ([], [("policy.tagQuotas.a.b.max", "1GiB")], ["policy.tagQuotas.a.b"]),
            ([("origins.a.baseURL", "http://a.example")], [], ["origins.a"]),
            ([], [("origins.a.baseURL", "http://a.example")], ["origins.a"]),
            (
                [("origins.a.baseURL", "http://a.example"), ("origins.a.headers.X-Key", "1")],
                [("origins.a.baseURL", "http://a.example"), ("origins.a.headers.X-Key", "2")], ["origins.a.headers"]
            ),
            (
                [("origins.a.baseURL", "http://a.example")],
                [("origins.a.baseURL", "http://a.example"), ("upstream.retries", "1")],
                ["upstream.retries", "origins.a.retries"]
            ),
        ])
    func aChangedSettingIsNamed(old: [(String, String)], new: [(String, String)], keys: [String]) throws {
        let (old, new) = (old.map { (name: $0.0, text: $0.1) }, new.map { (name: $0.0, text: $0.1) })
        #expect(try Self.settings(new).changedKeys(since: Self.settings(old)) == keys)
    }

    @Test("Each setting has the source that its value comes from, and credentials are masked")
    func eachSettingHasItsSource() throws {
        let file = try ConfigurationFile(
            text: """
                access: {token: file-secret}
                upstream: {maxTransfers: 3, allowedHosts: [a.example]}
                policy: {tagQuotas: {promo: {max: 1GiB}}}
                origins: {media: {baseURL: "http://a.example", retries: 1, headers: {X-Key: header-secret}}}
                """, name: "test")
        let layers = try SettingsLayers(
            flags: [("origins.media.retries", "2"), ("upstream.allowedHosts", "b.example")],
            environment: ["LARDER_TOKEN": "variable-secret", "LARDER_UPSTREAM_MAX_TRANSFERS": ""], file: file)
        let report = ReadSettings(try LarderSettings(layers), layers).report
        let rows = Dictionary(uniqueKeysWithValues: report.map { ($0.key, $0) })

        #expect(rows["access.token"]?.source == "environment")
        #expect(rows["access.token"]?.value == .scalar("•••"))
        #expect(rows["upstream.maxTransfers"]?.source == "file")
        #expect(rows["upstream.allowedHosts"]?.source == "flag")
        #expect(rows["upstream.allowedHosts"]?.value == .list(["b.example"]))
        #expect(rows["upstream.workers"]?.source == "default")
        #expect(rows["policy.tagQuotas.promo.max"]?.source == "file")
        #expect(rows["policy.tagQuotas.promo.min"] == nil)
        #expect(rows["origins.media.baseURL"]?.source == "file")
        #expect(rows["origins.media.retries"]?.source == "flag")
        #expect(rows["origins.media.retries"]?.value == .scalar("2"))
        #expect(rows["origins.media.headers.X-Key"]?.value == .scalar("•••"))
        #expect(rows["origins.media.hedging"] == nil)
        #expect(!"\(report)".contains("secret"))
        #expect(
            report.count(where: { !$0.key.hasPrefix("origins.") && !$0.key.contains(".tagQuotas.") })
                == LarderSettings.settings.count)
    }
}
