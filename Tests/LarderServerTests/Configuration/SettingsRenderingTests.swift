import CacheCore
import Testing

@testable import LarderServer

@Suite struct SettingsRenderingTests {
    @Test("Credentials are masked")
    func credentialsAreMasked() throws {
        let settings = try LarderSettings(flags: [
            ("access.token", "admin-secret"), ("access.readToken", "read-secret"),
            ("origins.m.baseURL", "http://a.example"), ("origins.m.headers.Authorization", "header-secret"),
        ])

        #expect(!settings.rendered.contains("secret"))
        #expect(settings.rendered.contains("  token: •••\n"))
        #expect(settings.rendered.contains("  readToken: •••\n"))
        #expect(settings.rendered.contains("      Authorization: •••\n"))
    }

    @Test("Secrets are not printed")
    func secretsDoNotPrintThemselves() {
        let secret = MaskedSecret("s3cret")
        var dumped = ""
        dump(secret, to: &dumped)

        for text in ["\(secret)", String(reflecting: secret), String(describing: Optional(secret)), dumped] {
            #expect(!text.contains("s3cret"))
        }
    }

    @Test("Printed settings parse to the same settings")
    func whatIsPrintedReadsBackAsTheSameSettings() throws {
        let settings = try LarderSettings(flags: [
            ("listen.address", "[::1]:9000"), ("dataDirectory", "/srv/a b: c#\"d\\"), ("policy.capacity", "none"),
            ("policy.maxIdle", "36h"), ("upstream.workers", "3"), ("upstream.maxBytesPerSecond", "90MiB"),
            ("upstream.pricePerGigabyte", "0.05"),
            ("upstream.allowedHosts", "*.a.example,b.example:81"),
            ("upstream.timeouts.idle", "250ms"), ("cors.allowedOrigins", "*"), ("log.format", "json"),
            ("limits.drainTimeout", "90s"), ("origins.a.b.baseURL", "https://a.example/x"),
            ("origins.a.b.keyQuery.include", "v,w"), ("origins.a.b.freshness", "10m"), ("origins.a.b.tls.verify", "no"),
            ("origins.c.baseURL", "http://c.example:81"), ("origins.c.keyQuery", "none"),
            ("origins.c.cmcd", "forward"), ("origins.c.access", "token"),
            ("origins.c.maxBytesPerSecond", "5MB"), ("credentialsDirectory", "/etc/a b"),
            ("fallbackDirectory", "fallback"), ("origins.c.credentialsFile", "c.txt"),
            ("origins.c.trustValidators", "immutable"), ("origins.c.staleIfError", "0s"),
            ("origins.c.negativeCaching", "none"), ("origins.c.requestDirectives", "yes"),
            ("origins.c.ignoreVary", "Origin,User-Agent"), ("origins.c.unknownLength", "partial"),
            ("origins.c.errorBodies", "upstream"),
            ("origins.c.verify", "always"), ("scrub.interval", "7d"), ("scrub.bytesPerSecond", "none"),
            ("origins.c.fallback.file", "a b/c.mp4"), ("origins.a.b.staleIfError", "respect"),
            ("origins.a.b.negativeCaching", "5s"), ("origins.a.b.mirrors", "https://b.example/x,http://c.example:81"),
            ("origins.a.b.hedging", "yes"), ("origins.a.b.circuitBreaker.failures", "5"),
            ("origins.a.b.circuitBreaker.pause", "500ms"), ("origins.c.circuitBreaker", "off"),
            ("origins.c.gapMerge", "0"), ("policy.tagQuotas.a b: c.max", "5GiB"),
            ("policy.tagQuotas.d.e.min", "1GiB"), ("policy.tagQuotas.d.e.max", "none"), ("origins.c.quota.max", "9GiB"),
            ("origins.c.speculative", "1MiB"),
            ("origins.c.finishIfRemainingPercent", "10"), ("upstream.gapMerge", "16KiB"),
            ("upstream.circuitBreaker.failures", "20"),
            ("origins.a.b.fallback.asset", "9f86d081884c7d659a2feaa0c55ad015"),
        ])

        let again = try LarderSettings(file: ConfigurationFile(text: settings.rendered, name: "printed"))

        #expect(again == settings)
    }

    @Test("Every setting has a unique key, a variable and a description")
    func everySettingHasANameAVariableAndAMeaningOfItsOwn() {
        let settings = LarderSettings.settings
        let variables = settings.map { SettingsPath(dotted: $0.key).variable }

        #expect(Set(settings.map(\.key)).count == settings.count)
        #expect(Set(variables).count == settings.count)
        #expect(settings.allSatisfy { !$0.meaning.isEmpty })
        #expect(variables.contains("LARDER_POLICY_HIGH_WATERMARK"))
    }

    @Test("Every variable is read")
    func everyVariableIsRead() throws {
        let scalars = LarderSettings.settings.filter { !$0.isList && !$0.key.hasPrefix("access.") }
        for setting in scalars where !setting.key.hasSuffix("File") && !setting.key.hasSuffix("Directory") {
            let variable = SettingsPath(dotted: setting.key).variable
            let error = #expect(throws: SettingsError.self) { try LarderSettings(environment: [variable: "?!"]) }
            #expect(error?.key == setting.key)
        }
    }

    @Test(
        "Unknown variables of TLS and of the access are refused, except those of Kubernetes and empty ones",
        arguments: [
            ("LARDER_LISTEN_TLS_CLIENT_CAFILE", "x", " (did you mean LARDER_LISTEN_TLS_CLIENT_CA_FILE?)"),
            ("LARDER_ACCESS_TOKENS_FILES", "x", " (did you mean LARDER_ACCESS_TOKENS_FILE?)"),
            ("LARDER_ACCESS_COLOUR_OF_THE_SKY", "x", ""), ("LARDER_ACCESS_COLOUR", "", nil),
            ("LARDER_ACCESS_PORT", "tcp://10.0.0.1:80", nil), ("LARDER_ACCESS_SERVICE_HOST", "10.0.0.1", nil),
            ("LARDER_ACCESS_SERVICE_PORT_HTTP", "80", nil), ("LARDER_ACCESS_PORT_80_TCP", "tcp://10.0.0.1:80", nil),
            ("LARDER_ACCESS_PORT_80_TCP_ADDR", "10.0.0.1", nil), ("LARDER_ACCESS_API_SERVICE_PORT", "80", nil),
            ("LARDER_LISTEN_TLS_SERVICE_HOST", "10.0.0.1", nil), ("LARDER_COLOUR", "x", nil),
        ])
    func unknownVariablesOfTheAccessAreRefused(name: String, value: String, suggestion: String?) throws {
        guard let suggestion else {
            _ = try LarderSettings(environment: [name: value])
            return
        }
        let error = #expect(throws: SettingsError.self) { try LarderSettings(environment: [name: value]) }
        #expect(error?.description == "\(name): is not a known setting\(suggestion)")
        #expect(SettingsSchema.strangers(in: [name]) == [])
    }

    @Test("Unknown variables are reported, except those of Kubernetes")
    func variablesThatMeanNothingAreNamedAndThoseOfKubernetesAreNot() {
        let sentences = SettingsSchema.strangers(in: [
            "PATH", "LARDER_POLICY_CAPACITY", "LARDER_TOKEN", "LARDER_CONFIG", "LARDER_ORIGINS_M_BASE_URL",
            "LARDER_PORT", "LARDER_SERVICE_HOST", "LARDER_SERVICE_PORT", "LARDER_SERVICE_PORT_HTTP",
            "LARDER_PORT_8080_TCP_ADDR", "LARDER_API_SERVICE_HOST", "LARDER_POLICY_CAPACITTY", "LARDER_COLOUR",
        ])

        #expect(
            sentences == [
                "LARDER_COLOUR is not a known setting and is ignored",
                "LARDER_POLICY_CAPACITTY is not a known setting and is ignored (did you mean LARDER_POLICY_CAPACITY?)",
            ])
    }
}
