import CacheCore
import CacheEngine
import CurlUpstream
import Foundation
import Logging
import Testing

@testable import LarderServer

@Suite struct LarderSettingsTests {
    @Test("Flags override variables, variables the file, and the file the defaults")
    func flagsWinOverVariablesOverTheFileOverDefaults() throws {
        let file = try ConfigurationFile(
            text: """
                policy: {capacity: 1GiB, maxIdle: 30d, maxAge: 90d}
                """, name: "test.yaml")
        let environment = [
            "LARDER_POLICY_CAPACITY": "2GiB", "LARDER_POLICY_MAX_IDLE": "20d", "LARDER_POLICY_ALGORITHM": "sieve",
        ]

        let settings = try LarderSettings(
            flags: [("policy.capacity", "3GiB")], environment: environment, file: file)

        #expect(settings.policy.capacityBytes == 3 << 30)
        #expect(settings.policy.maxIdle == .seconds(20 * 86_400))
        #expect(settings.policy.maxAge == .seconds(90 * 86_400))
        #expect(settings.policy.highWatermark == 0.95)
        #expect(settings.policy.algorithm == .sieve)
    }

    @Test("JSON and YAML files give the same settings")
    func jsonFilesSayTheSameAsYAMLFiles() throws {
        let yaml = try ConfigurationFile(
            text: """
                listen:
                  address: "[::1]:9000"
                upstream:
                  allowedHosts: ["*.Example.org", "cdn.example:8443"]
                jobs:
                  concurrency: 8
                access:
                  allowUnauthenticated: yes
                """, name: "test.yaml")
        let json = try ConfigurationFile(
            text: """
                {"listen": {"address": "[::1]:9000"},
                \t"upstream": {"allowedHosts": ["*.Example.org", "cdn.example:8443"]},
                \t"jobs": {"concurrency": 8}, "access": {"allowUnauthenticated": true}}
                """, name: "test.json")

        let settings = try LarderSettings(file: json)

        #expect(settings == (try LarderSettings(file: yaml)))
        #expect(settings.listen.address == .host("::1", port: 9000))
        #expect(settings.upstream.allowedHosts == ["*.example.org", "cdn.example:8443"])
        #expect(settings.jobConcurrency == 8)
        #expect(settings.access.allowUnauthenticated)
    }

    @Test("Merge keys add the entries of other mappings (YAML 1.1, Merge Key Language-Independent Type)")
    func mergeKeys() throws {
        let merged = try ConfigurationFile(
            text: """
                origins:
                  a: &a
                    baseURL: https://a.example
                    retries: 5
                    timeouts: &t {read: 9s, idle: 8s}
                  b: &b {<<: *a, retries: 6, timeouts: {<<: *t, idle: 7s}}
                  c:
                    baseURL: https://c.example
                    <<: [*b, {hedging: true, retries: 9}]
                """, name: "test.yaml")
        let plain = try ConfigurationFile(
            text: """
                origins:
                  a: {baseURL: https://a.example, retries: 5, timeouts: {read: 9s, idle: 8s}}
                  b: {baseURL: https://a.example, retries: 6, timeouts: {read: 9s, idle: 7s}}
                  c: {baseURL: https://c.example, retries: 6, timeouts: {read: 9s, idle: 7s}, hedging: true}
                """, name: "test.yaml")
        #expect(try LarderSettings(file: merged) == (try LarderSettings(file: plain)))

        for value in ["5", "[5]", "null"] {
            let error = #expect(throws: SettingsError.self) {
                try ConfigurationFile(text: "origins: {a: {<<: \(value)}}", name: "test.yaml")
            }
            #expect(error.map { "\($0)".contains("origins.a.<<") } ?? false)
        }
        #expect(throws: SettingsError.self) {
            try ConfigurationFile(text: #"{"origins": {"a": {"<<": {"retries": 1}}}}"#, name: "test.json")
        }
    }

    @Test("Origins inherit the shared upstream settings")
    func originsStartFromTheUpstreamSettingsOfAll() throws {
        let file = try ConfigurationFile(
            text: """
                upstream: {retries: 7, allowPrivateAddresses: true, timeouts: {connect: 2s, idle: none}}
                origins:
                  media: {baseURL: "https://media.example/library/", headers: {Authorization: Bearer abc}, freshness: 1h}
                  a.b: {baseURL: "http://10.0.0.1:81", retries: 1, keyQuery: {exclude: [sig, exp]}, access: public}
                """, name: "test.yaml")

        let origins = try LarderSettings(file: file).origins

        try #require(origins.map(\.name) == ["a.b", "media"])
        #expect(origins[0].settings.retries == 1)
        #expect(origins[0].settings.keyQuery == .exclude(["sig", "exp"]))
        #expect(origins[0].settings.effectiveAccess == .public)
        #expect(origins[1].settings.baseURL == "https://media.example/library")
        #expect(origins[1].settings.headers == ["Authorization": "Bearer abc"])
        #expect(origins[1].settings.freshness == .ttl(.seconds(3600)))
        #expect(origins[1].settings.retries == 7)
        #expect(origins[1].settings.timeouts.connect == .seconds(2))
        #expect(origins[1].settings.timeouts.idle == nil)
        #expect(!origins[1].settings.allowPrivateAddresses)
        #expect(origins[1].settings.effectiveAccess == .token)
    }

    @Test("Fill settings apply to all origins and can be overridden")
    func fillsAreSetForAllOriginsAndForEach() throws {
        let file = try ConfigurationFile(
            text: """
                upstream: {gapMerge: 16KiB, hedging: yes, finishIfRemainingPercent: 5, circuitBreaker: {failures: 20}}
                origins:
                  a: {baseURL: "http://a.example", mirrors: ["http://b.example/", "https://c.example/d"]}
                  b: {baseURL: "http://b.example", circuitBreaker: off, hedging: no, speculative: 1MiB}
                  c: {baseURL: "http://c.example", circuitBreaker: {failures: 3, pause: 500ms}, gapMerge: 0}
                """, name: "test.yaml")

        let settings = try LarderSettings(environment: ["LARDER_ORIGINS_C_CIRCUIT_BREAKER": "off"], file: file)
        let other = try LarderSettings(
            flags: [("upstream.circuitBreaker", "off"), ("origins.c.circuitBreaker.failures", "4")], file: file)

        var first = OriginSettings(baseURL: "http://a.example")
        first.mirrors = ["http://b.example", "https://c.example/d"]
        first.gapMergeBytes = 16 << 10
        first.hedging = true
        first.finishIfRemainingPercent = 5
        first.circuitBreaker = .init(failures: 20)
        #expect(settings.origins[0].settings == first)
        let (second, third) = (settings.origins[1].settings, settings.origins[2].settings)
        #expect(second.circuitBreaker == nil && !second.hedging && second.speculativeBytes == 1 << 20)
        #expect(third.circuitBreaker == nil && third.gapMergeBytes == 0)
        #expect(settings.urlOrigin.circuitBreaker == .init(failures: 20))
        #expect(other.urlOrigin.circuitBreaker == nil && other.origins[0].settings.circuitBreaker == nil)
        #expect(other.origins[2].settings.circuitBreaker == .init(failures: 4, pause: .milliseconds(500)))
    }

    @Test("Origins set trust, storing and error fallbacks")
    func originsSayWhatIsTrustedKeptAndAnsweredInPlaceOfFailures() throws {
        let file = try ConfigurationFile(
            text: """
                credentialsDirectory: /etc/larder/credentials
                origins:
                  a:
                    baseURL: http://a.example
                    freshness: explicit
                    credentialsFile: a/media.txt
                    trustValidators: lengthAndLastModified
                    staleIfError: 1h
                    negativeCaching: none
                    requestDirectives: yes
                    ignoreVary: [User-Agent, Origin]
                    unknownLength: partial
                    fallback: {file: offline.mp4}
                  b: {baseURL: "http://b.example", fallback: {asset: 9f86d081884c7d659a2feaa0c55ad015}}
                """, name: "test.yaml")

        let settings = try LarderSettings(
            environment: ["LARDER_ORIGINS_B_NEGATIVE_CACHING": "10s", "LARDER_FALLBACK_DIRECTORY": "/srv/other"],
            file: file)

        var first = OriginSettings(baseURL: "http://a.example")
        first.freshness = .explicit
        first.credentialsFile = "a/media.txt"
        first.trustValidators = .lengthAndLastModified
        first.staleIfError = .seconds(3600)
        first.negativeCaching = nil
        first.requestDirectives = true
        first.ignoreVary = ["User-Agent", "Origin"]
        first.unknownLength = .partial
        first.fallback = .file("offline.mp4")
        var second = OriginSettings(baseURL: "http://b.example")
        second.negativeCaching = .seconds(10)
        second.fallback = .asset(AssetID(high: 0x9f86_d081_884c_7d65, low: 0x9a2f_eaa0_c55a_d015))
        #expect(settings.origins.map(\.settings) == [first, second])
        #expect(settings.cache.credentialsDirectory == "/etc/larder/credentials")
        #expect(settings.cache.fallbackDirectory == "/srv/other")
    }

    @Test("The total rate of all transfers is limited")
    func allTransfersTogetherAreLimited() throws {
        let settings = try LarderSettings(
            flags: [("upstream.maxBytesPerSecond", "90MiB"), ("upstream.maxTransfers", "7")])

        #expect(settings.pool(OpenFileBudget(limit: 4096)).maxBytesPerSecond == 90 << 20)
        #expect(settings.pool(OpenFileBudget(limit: 4096)).maxTransfers == 7)
        #expect(LarderSettings().pool(OpenFileBudget(limit: 4096)).maxBytesPerSecond == nil)
    }

    @Test(
        "The number of transfers is limited by the setting and by the open files",
        arguments: [
            (200, 25), (1024, 64), (4096, 128), (1 << 20, 300),
        ])
    func transfersAreLimitedByTheSettingAndTheOpenFiles(limit: Int, expected: Int) throws {
        let settings = try LarderSettings(flags: [("upstream.maxTransfers", "300")])
        #expect(settings.pool(OpenFileBudget(limit: limit)).maxTransfers == expected)
    }

    @Test("Origins can be defined by flags and changed by variables")
    func originsCanBeNamedByFlagsAndChangedByVariables() throws {
        let settings = try LarderSettings(
            flags: [("origins.a.b.baseURL", "http://one.example"), ("origins.a.b.headers.X-Key", "flag")],
            environment: ["LARDER_ORIGINS_A_B_RETRIES": "9"])

        let origin = try #require(settings.origins.first)
        #expect(origin.name == "a.b")
        #expect(origin.settings.retries == 9)
        #expect(origin.settings.headers["x-key"] == "flag")
    }

    @Test(
        "Tokens have short variables, and the long ones take precedence",
        arguments: [
            ("LARDER_TOKEN", "LARDER_ACCESS_TOKEN"), ("LARDER_READ_TOKEN", "LARDER_ACCESS_READ_TOKEN"),
        ])
    func tokensHaveShortVariablesAndTheLongOnesWin(short: String, long: String) throws {
        let one = try LarderSettings(environment: [short: "short"]).access
        let both = try LarderSettings(environment: [short: "short", long: "long"]).access

        #expect((one.token ?? one.readToken)?.exposed == "short")
        #expect((both.token ?? both.readToken)?.exposed == "long")
    }

    @Test("Empty variables count as absent")
    func emptyVariablesCountAsAbsent() throws {
        #expect(try LarderSettings(environment: ["LARDER_TOKEN": "", "LARDER_LISTEN_ADDRESS": ""]) == LarderSettings())
    }

    @Test("Token files are read without their last line break")
    func tokenFilesAreReadWithoutTheirLastLineBreak() throws {
        let path = FileManager.default.temporaryDirectory.appending(path: "larder-token-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: path) }  // a leftover file is harmless
        try Data("s3cret\n".utf8).write(to: URL(filePath: path))

        let settings = try LarderSettings(environment: ["LARDER_TOKEN_FILE": path])

        #expect(settings.access.token?.exposed == "s3cret")
        #expect(settings.rendered.contains("tokenFile: \(path)"))
        #expect(!settings.rendered.contains("token: "))
    }

    @Test(
        "Without a token only loopback addresses can be served",
        arguments: [
            ("127.0.0.1:80", true), ("127.9.9.9:80", true), ("localhost:80", true), ("[::1]:80", true),
            ("0.0.0.0:80", false), ("[::]:80", false), ("192.168.1.2:80", false), ("127.example:80", false),
        ])
    func withoutATokenOnlyThisMachineIsServed(address: String, isServed: Bool) throws {
        let settings = try LarderSettings(flags: [("listen.address", address)])

        if isServed {
            try settings.checkExposure()
        } else {
            let error = #expect(throws: SettingsError.self) { try settings.checkExposure() }
            #expect(error?.key == "listen.address")
        }
    }

    @Test("A token or allowUnauthenticated permits other addresses")
    func aTokenOrAWordFromTheAdministratorOpensTheServiceToOthers() throws {
        for opener in [("access.token", "t"), ("access.readToken", "t"), ("access.allowUnauthenticated", "true")] {
            try LarderSettings(flags: [("listen.address", "0.0.0.0:80"), opener]).checkExposure()
        }
    }
}
