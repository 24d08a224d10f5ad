import Testing

@testable import LarderServer

/// The part of a sentence about `listen.address`.
private let notAddress =
    "is not a host and a port, or unix: and an absolute path of at most 107 bytes (try 127.0.0.1:8080)"

/// Each rejection names the key and states a valid value.
@Suite struct SettingsRefusalTests {
    @Test(
        "Bad flags are rejected by name",
        arguments: [
            (
                "policy.capacity", "20GX",
                "policy.capacity: \"20GX\" is not a byte size of 16MiB or more or none (try 20GiB)"
            ),
            ("policy.minFreeDisk", "-1", "policy.minFreeDisk: \"-1\" is not a byte size (try 20GiB)"),
            ("policy.maxIdle", "5", "policy.maxIdle: \"5\" is not a duration or none (try 30d)"),
            ("policy.maxAge", "0s", "policy.maxAge: \"0s\" is not a duration or none (try 90d)"),
            (
                "policy.highWatermark", "95",
                "policy.highWatermark: \"95\" is not a fraction above 0 and up to 1 (try 0.9)"
            ),
            ("policy.lowWatermark", "0.96", "policy.lowWatermark: The low watermark must be below the high watermark."),
            ("policy.capacity", "5", "policy.capacity: \"5\" is not a byte size of 16MiB or more or none (try 20GiB)"),
            (
                "policy.tagQuotas.a.b.max", "0",
                "policy.tagQuotas.a.b.max: \"0\" is not a byte size of 1 or more or none (try 100GiB)"
            ),
            (
                "policy.tagQuotas.a.maxi", "1GiB",
                "policy.tagQuotas.a.maxi: is not a known setting (did you mean policy.tagQuotas.a.max?)"
            ),
            ("upstream.workers", "0", "upstream.workers: \"0\" is not a whole number from 1 to 256 or none (try 4)"),
            ("upstream.retries", "many", "upstream.retries: \"many\" is not a whole number from 0 to 20 (try 3)"),
            (
                "upstream.readAhead", "1KiB",
                "upstream.readAhead: \"1KiB\" is not a byte size of 64KiB or more (try 16MiB)"
            ),
            ("upstream.timeouts.read", "none", "upstream.timeouts.read: \"none\" is not a duration up to 1d (try 30s)"),
            (
                "upstream.allowedHosts", "ok.example,http://x",
                "upstream.allowedHosts: \"http://x\" is not a host, *.suffix or host:port (try media.example)"
            ),
            ("listen.address", "::1:80", "listen.address: \"::1:80\" \(notAddress)"),
            ("listen.address", ":80", "listen.address: \":80\" \(notAddress)"),
            ("listen.address", "a:70000", "listen.address: \"a:70000\" \(notAddress)"),
            ("listen.proxyProtocol", "required", "listen.trustedProxies: is required by listen.proxyProtocol"),
            ("listen.clientAddressFrom", "forwarded", "listen.trustedProxies: is required by listen.clientAddressFrom"),
            (
                "listen.trustedProxies", "127.0.0.1,10.0.0.1/8",
                "listen.trustedProxies: \"10.0.0.1/8\" is not an IP address, or a network such as 10.0.0.0/8 without "
                    + "further bits (try 10.0.0.0/8)"
            ),
            ("listen.tls.keyFile", "k.pem", "listen.tls.certificateFile: is required by listen.tls.keyFile"),
            ("listen.tls.certificateFile", "c.pem", "listen.tls.keyFile: is required by listen.tls.certificateFile"),
            (
                "log.level", "loud",
                "log.level: \"loud\" is not one of trace, debug, info, notice, warning, error, critical"
            ),
            ("log.format", "xml", "log.format: \"xml\" is not one of text, json"),
            ("log.access", "xml", "log.access: \"xml\" is not one of text, json, combined, off or none"),
            (
                "telemetry.traces.sampleRatio", "1.1",
                "telemetry.traces.sampleRatio: \"1.1\" is not a share from 0 to 1 or none (try 0.01)"
            ),
            ("access.token", "", "access.token: is empty"),
            ("access.tokenFile", "/nowhere/t", "access.tokenFile: \"/nowhere/t\" cannot be read"),
            (
                "access.allowUnauthenticated", "maybe",
                "access.allowUnauthenticated: \"maybe\" is not true or false (try true)"
            ),
            (
                "limits.bodyBytes", "1GiB",
                "limits.bodyBytes: \"1GiB\" is not a byte size from 1KiB to 64MiB (try 1MiB)"
            ),
            (
                "cors.allowedOrigins", "https://a.example/path",
                "cors.allowedOrigins: \"https://a.example/path\" is not * or scheme://host (try https://dashboard.example)"
            ),
            (
                "origins.m.retries", "3",
                "origins.m.baseURL: The base URL is missing; give the URL of the origin's files."
            ),
            (
                "origins.m.baseURL", "ftp://a.example",
                "origins.m.baseURL: \"ftp://a.example\" is not an http or https URL without user, query and fragment "
                    + "(try https://media.example/library)"
            ),
            (
                "origins.m.baseURL", "http://user@a.example",
                "origins.m.baseURL: \"http://…@a.example\" is not an http or https URL without user, query and fragment "
                    + "(try https://media.example/library)"
            ),
            (
                "origins.m.keyQuery", "some",
                "origins.m.keyQuery: \"some\" is not all, none, or a mapping with include or exclude (try none)"
            ),
            (
                "origins.m.credentialsFile", "../a",
                "origins.m.credentialsFile: \"../a\" is not a relative path without . and .. or none (try media.txt)"
            ),
            (
                "origins.m.fallback.file", "/a",
                "origins.m.fallback.file: \"/a\" is not a relative path without . and .. (try media.txt)"
            ),
            (
                "origins.m.staleIfError", "none",
                "origins.m.staleIfError: \"none\" is not a duration up to 2^31 seconds or respect (try 1h)"
            ),
            (
                "origins.m.negativeCaching", "30000d",
                "origins.m.negativeCaching: \"30000d\" is not a duration up to 2^31 seconds or none (try 5m)"
            ),
            (
                "origins.m.ignoreVary", "Origin,*",
                "origins.m.ignoreVary: \"*\" is not a header field's name (try User-Agent)"
            ),
            (
                "origins.m.trustValidators", "weak",
                "origins.m.trustValidators: \"weak\" is not one of strong, lengthAndLastModified, immutable"
            ),
            ("origins.m.errorBodies", "own", "origins.m.errorBodies: \"own\" is not one of upstream, problem"),
            ("origins.m.unknownLength", "206", "origins.m.unknownLength: \"206\" is not one of whole, partial"),
            (
                "origins.m.mirrors", "http://a.example,b",
                "origins.m.mirrors: \"b\" is not an http or https URL without user, query and fragment "
                    + "(try https://media.example/library)"
            ),
            ("upstream.mirrors", "http://a.example", "upstream.mirrors: is not a known setting"),
            (
                "upstream.gapMerge", "17MiB",
                "upstream.gapMerge: \"17MiB\" is not a byte size from 0 to 16MiB (try 64KiB)"
            ),
            (
                "origins.m.speculative", "2GiB",
                "origins.m.speculative: \"2GiB\" is not a byte size from 0 to 1GiB (try 2MiB)"
            ),
            (
                "origins.m.finishIfRemainingPercent", "10%",
                "origins.m.finishIfRemainingPercent: \"10%\" is not a whole number from 0 to 100 or none (try 10)"
            ),
            ("upstream.hedging", "maybe", "upstream.hedging: \"maybe\" is not true or false (try true)"),
            (
                "origins.m.circuitBreaker", "5",
                "origins.m.circuitBreaker: \"5\" is not on, off, or a mapping with failures and pause (try off)"
            ),
            (
                "upstream.circuitBreaker.failures", "0",
                "upstream.circuitBreaker.failures: \"0\" is not a whole number from 1 to 1000 (try 10)"
            ),
            (
                "upstream.circuitBreaker.pause", "61m",
                "upstream.circuitBreaker.pause: \"61m\" is not a duration up to 1h (try 2s)"
            ),
            (
                "upstream.maxBytesPerSecond", "1000",
                "upstream.maxBytesPerSecond: \"1000\" is not a byte size of 1KiB or more or none (try 50MiB)"
            ),
            ("policy.capacitty", "1", "policy.capacitty: is not a known setting (did you mean policy.capacity?)"),
            ("origins.m.baseUrl", "x", "origins.m.baseUrl: is not a known setting (did you mean origins.m.baseURL?)"),
            (
                "fleet.etcd.endpoints", "http://root:pw@a.example/x?token=pw",
                "fleet.etcd.endpoints: \"http://…@a.example/x?…\" is not an http or https URL without a path "
                    + "(try http://10.0.0.12:8080)"
            ),
            ("colour", "red", "colour: is not a known setting"),
            ("policy", "3", "policy: is a group of settings, not a single setting"),
        ])
    func badFlagsAreRefusedByName(key: String, text: String, sentence: String) {
        let error = #expect(throws: SettingsError.self) { try LarderSettings(flags: [(key, text)]) }

        #expect(error?.description == sentence)
    }

    @Test(
        "Bad files are rejected by name",
        arguments: [
            ("polcy: {capacity: 1GiB}", "polcy: is not a known setting"),
            ("policy: {capacitty: 1GiB}", "policy.capacitty: is not a known setting (did you mean policy.capacity?)"),
            ("policy: 3", "policy: is a single value, not a group of settings"),
            (
                "origins: {m: {baseURL: http://a.example, credentialsFile: a.txt}}",
                "origins.m.credentialsFile: requires credentialsDirectory"
            ),
            (
                "origins: {m: {baseURL: http://a.example, fallback: {file: a.mp4}}}",
                "origins.m.fallback.file: requires fallbackDirectory"
            ),
            (
                "origins: {m: {baseURL: http://a.example, fallback: {asset: a.mp4}}}",
                "origins.m.fallback.asset: \"a.mp4\" is not an asset's id (try 9f86d081884c7d659a2feaa0c55ad015)"
            ),
            (
                "origins: {m: {baseURL: http://a.example, fallback: "
                    + "{asset: 9f86d081884c7d659a2feaa0c55ad015, file: a.mp4}}}",
                "origins.m.fallback.file: cannot be combined with fallback.asset; remove one of them"
            ),
            (
                "origins: {m: {baseURL: http://a.example, mirrors: [http://b.example, HTTP://A.example/]}}",
                "origins.m.mirrors: The mirror repeats the base URL or another mirror."
            ),
            (
                "origins: {m: {baseURL: http://a.example, mirrors: ["
                    + "http://m1, http://m2, http://m3, http://m4, http://m5, http://m6, http://m7, http://m8, http://m9]}}",
                "origins.m.mirrors: has more than 8 items"
            ),
            (
                "upstream: {circuitBreaker: {failure: 3}}",
                "upstream.circuitBreaker.failure: is not a known setting (did you mean upstream.circuitBreaker.failures?)"
            ),
            ("policy: {capacity: [1, 2]}", "policy.capacity: is a list, not a single value"),
            ("policy: {capacity: }", "policy.capacity: is empty, not a single value"),
            ("policy: {capacity: {bytes: 3}}", "policy.capacity: is a mapping, not a single value"),
            ("{\"policy\": {\"capacity\": null}}", "policy.capacity: is empty, not a single value"),
            ("upstream: {allowedHosts: a.example}", "upstream.allowedHosts: is a single value, not a list of values"),
            ("upstream: {allowedHosts: [[a]]}", "upstream.allowedHosts: is a list, not a list of values"),
            ("origins: {m: {baseURL: http://a.example, speed: 3}}", "origins.m.speed: is not a known setting"),
            ("origins: {m: {}}", "origins.m.baseURL: The base URL is missing; give the URL of the origin's files."),
            (
                "origins: {M: {baseURL: http://a.example}}",
                "origins.M: is not a valid origin name (1 to 64 of a–z, 0–9, '.', '_', '-', the first a letter or digit)"
            ),
            (
                "origins: {m: {baseURL: http://a.example, headers: {\"X Y\": v}}}",
                "origins.m.headers.X Y: is not a valid header field name"
            ),
            (
                "origins: {m: {baseURL: http://a.example, headers: {X: \"a\\r\\nb\"}}}",
                "origins.m.headers.X: is not a valid header field value: it contains control characters, or outer spaces or tabs"
            ),
            ("[1, 2]", "test.yaml: contains a list instead of settings"),
            ("listen: {address: 1.2.3.4}", "listen.address: \"1.2.3.4\" \(notAddress)"),
        ])
    func badFilesAreRefusedByName(text: String, sentence: String) {
        let error = #expect(throws: SettingsError.self) {
            try LarderSettings(file: ConfigurationFile(text: text, name: "test.yaml"))
        }

        #expect(error?.description == sentence)
    }

    @Test(
        "A file with a duplicate key is rejected by name",
        arguments: [
            "policy:\n  capacity: 1GiB\npolicy:\n  maxAge: 1d\n",
            "policy:\n  capacity: 1GiB\n  capacity: 2GiB\n",
            "policy:\n  capacity: 1GiB\n  \"capacity\": 1GiB\n",
            "{\"policy\": {\"capacity\": \"1GiB\", \"capacity\": \"2GiB\"}}",
        ])
    func aDuplicateKeyIsRejected(text: String) {
        let error = #expect(throws: SettingsError.self) { try ConfigurationFile(text: text, name: "larder.yaml") }
        #expect(error?.description.hasPrefix("larder.yaml: is neither YAML nor JSON") == true)
        #expect(error?.description.contains("capacity") == true || error?.description.contains("policy") == true)
    }

    @Test(
        "A file that is neither YAML nor JSON is rejected by name",
        arguments: ["a: [", "policy: {capacity: 1GiB}\npolicy: {capacity: 2GiB}", "\u{1}"])
    func whatIsNeitherYAMLNorJSONIsRefusedByItsFile(text: String) {
        let error = #expect(throws: SettingsError.self) { try ConfigurationFile(text: text, name: "test.yaml") }

        #expect(error?.key == "test.yaml")
    }

    @Test("A missing file is named")
    func aFileThatIsNotThereIsNamed() {
        let error = #expect(throws: SettingsError.self) { try ConfigurationFile(path: "/nowhere/larder.yaml") }

        #expect(error?.key == "/nowhere/larder.yaml")
    }

    @Test("An empty file leaves the defaults", arguments: ["", "# nothing yet\n", "{}"])
    func aFileThatSaysNothingLeavesTheDefaults(text: String) throws {
        #expect(try LarderSettings(file: ConfigurationFile(text: text, name: "test.yaml")) == LarderSettings())
    }

    @Test("Bad variables are rejected with the setting they map to")
    func badVariablesAreRefusedByTheSettingTheyMean() {
        let error = #expect(throws: SettingsError.self) {
            try LarderSettings(environment: ["LARDER_UPSTREAM_MAX_TRANSFERS": "lots"])
        }

        #expect(error?.key == "upstream.maxTransfers")
    }
}
