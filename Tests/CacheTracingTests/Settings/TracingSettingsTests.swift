import CacheCore
import CacheTracing
import Testing

private let endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT"
private let tracesEndpoint = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"

@Suite struct TracingSettingsTests {
    private func read(_ variables: [String: String]) throws -> TracingSettings {
        try TracingSettings(environment: [endpoint: "http://collector:4318"].merging(variables) { $1 })
    }

    private func failure(of variables: [String: String]) -> TracingSettingsError? {
        #expect(throws: TracingSettingsError.self) { try read(variables) }
    }

    @Test(
        "The endpoint is that for traces, or the path v1/traces below the general one",
        arguments: [
            ([endpoint: "http://collector:4318"], "http://collector:4318/v1/traces"),
            ([endpoint: "http://collector:4318/"], "http://collector:4318/v1/traces"),
            ([endpoint: "HTTPS://collector/base"], "https://collector/base/v1/traces"),
            ([endpoint: "https://collector/base/"], "https://collector/base/v1/traces"),
            ([endpoint: "http://a", tracesEndpoint: "http://b/x"], "http://b/x"),
            ([tracesEndpoint: "http://b"], "http://b/"), ([tracesEndpoint: "http://[::1]:4318"], "http://[::1]:4318/"),
            ([tracesEndpoint: "http://b?key=1"], "http://b/?key=1"),
            (["OTEL_TRACES_EXPORTER": "otlp"], "http://localhost:4318/v1/traces"),
        ] as [([String: String], String)])
    func readsTheEndpoint(variables: [String: String], expected: String) throws {
        let settings = try TracingSettings(environment: variables)

        #expect(settings.endpoint?.url == expected)
        #expect(settings.isEnabled)
        #expect(settings.serviceName == "larder" && settings.timeout == .seconds(10))
        #expect(settings.sampler == TraceSampler(ratio: 1) && settings.sampler.isParentBased)
    }

    @Test(
        "Tracing is disabled without an endpoint and by two variables, and other variables are not read then",
        arguments: [
            [:], [endpoint: ""], [endpoint: "  "], ["OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"],
            [endpoint: "http://a", "OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"],
            [endpoint: "http://a", "OTEL_SDK_DISABLED": "True"],
            [endpoint: "http://a", "OTEL_TRACES_SAMPLER": "always_off"],
        ] as [[String: String]])
    func isDisabled(variables: [String: String]) throws {
        #expect(try !TracingSettings(environment: variables).isEnabled)
    }

    @Test("A value of OTEL_SDK_DISABLED other than true and false has no effect but a notice", arguments: ["1", "yes"])
    func noticesBooleans(value: String) throws {
        let settings = try read(["OTEL_SDK_DISABLED": value])

        #expect(settings.isEnabled && settings.notices.count == 1)
        #expect(try read(["OTEL_SDK_DISABLED": "FALSE"]).notices.isEmpty)
    }

    @Test("Settings of the service have precedence over the variables")
    func prefersSettings() throws {
        let configured = TracingSettings.Configured(
            endpoint: "https://own/v1/traces", headers: SecretHeaders(["X-Key": "own"]), sampleRatio: 0.25,
            timeout: .seconds(3))
        let settings = try TracingSettings(
            environment: [
                endpoint: "http://a", "OTEL_EXPORTER_OTLP_HEADERS": "x-key=other", "OTEL_EXPORTER_OTLP_TIMEOUT": "1",
                "OTEL_TRACES_SAMPLER": "always_on",
            ], configured: configured)

        #expect(settings.endpoint?.url == "https://own/v1/traces")
        #expect(settings.headers.exposed["X-Key"] == "own")
        #expect(settings.sampler == TraceSampler(ratio: 0.25))
        #expect(settings.timeout == .seconds(3))
    }

    @Test(
        "Each sampler has a ratio and may follow the parent",
        arguments: [
            ("always_on", nil, 1, false), ("always_off", "0.5", 0, false), ("traceidratio", "0.25", 0.25, false),
            ("parentbased_always_on", nil, 1, true), ("parentbased_always_off", nil, 0, true),
            ("parentbased_traceidratio", "0.01", 0.01, true), ("parentbased_traceidratio", nil, 1, true),
        ] as [(String, String?, Double, Bool)])
    func readsTheSampler(name: String, argument: String?, ratio: Double, isParentBased: Bool) throws {
        let settings = try read(["OTEL_TRACES_SAMPLER": name, "OTEL_TRACES_SAMPLER_ARG": argument ?? ""])

        #expect(settings.sampler == TraceSampler(ratio: ratio, isParentBased: isParentBased))
    }

    @Test("Header fields are decoded, and those for traces replace the general ones")
    func readsHeaders() throws {
        let general = ["OTEL_EXPORTER_OTLP_HEADERS": " authorization = Basic%20YTpi%3D%3D , x-tenant=a,"]

        let headers = try read(general).headers.exposed
        #expect(headers.fields == [.init("authorization", "Basic YTpi=="), .init("x-tenant", "a")])
        let traces = try read(general.merging(["OTEL_EXPORTER_OTLP_TRACES_HEADERS": "x-other=b=c"]) { $1 })
        #expect(traces.headers.exposed.fields == [.init("x-other", "b=c")])
    }

    @Test("The resource has the service's name and version and the given attributes")
    func readsTheResource() throws {
        let attributes = ["OTEL_RESOURCE_ATTRIBUTES": "service.name=a,deployment.environment.name=caf%C3%A9,x=1,x=2"]

        let settings = try read(attributes)
        #expect(settings.serviceName == "a")
        #expect(
            settings.resourceAttributes == [.init("deployment.environment.name", "café"), .init("x", "2")])
        #expect(try read(attributes.merging(["OTEL_SERVICE_NAME": "b"]) { $1 }).serviceName == "b")
    }

    @Test("The time limit is a number of milliseconds, and 0 means one hour")
    func readsTheTimeLimit() throws {
        #expect(try read(["OTEL_EXPORTER_OTLP_TIMEOUT": "1500"]).timeout == .milliseconds(1500))
        #expect(
            try read(["OTEL_EXPORTER_OTLP_TIMEOUT": "1500", "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT": "20"]).timeout
                == .milliseconds(20))
        #expect(try read(["OTEL_BSP_SCHEDULE_DELAY": "200"]).interval == .milliseconds(200))
        #expect(try read(["OTEL_EXPORTER_OTLP_TIMEOUT": "0"]).timeout == .seconds(3600))
    }

    @Test(
        "An invalid value is an error that names the variable",
        arguments: [
            ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/xml"), ("OTEL_TRACES_EXPORTER", "zipkin"),
            ("OTEL_TRACES_EXPORTER", "otlp,console"), ("OTEL_TRACES_SAMPLER", "jaeger_remote"),
            ("OTEL_TRACES_SAMPLER", "parentbased_"), ("OTEL_EXPORTER_OTLP_TIMEOUT", "10s"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "-1"), ("OTEL_BSP_SCHEDULE_DELAY", "0"),
            ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/ca.pem"),
            ("OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY", "/key.pem"), ("OTEL_RESOURCE_ATTRIBUTES", "a"),
            ("OTEL_RESOURCE_ATTRIBUTES", "a=%"), ("OTEL_RESOURCE_ATTRIBUTES", "a=%+f"),
            ("OTEL_RESOURCE_ATTRIBUTES", "a=%FF"), (endpoint, "collector:4318"), (endpoint, "grpc://collector"),
            (endpoint, "http://"), (endpoint, "http://:4318"), (endpoint, "http://a:0"), (endpoint, "http://a:port"),
            (endpoint, "http://user:pw@a"), (endpoint, "http://a/?x=1"), (endpoint, "http://a/#x"),
            (endpoint, "http://a/ b"), (endpoint, "http://ä"), (tracesEndpoint, "http://[::1"),
        ])
    func rejectsValues(name: String, value: String) throws {
        let error = try #require(failure(of: [name: value]))

        #expect(error.key == name)
        #expect(!error.problem.isEmpty && !error.description.contains("pw"))
    }

    @Test(
        "Another protocol in the environment disables tracing with a notice, unless an endpoint is configured",
        arguments: [
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"), ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/protobuf"),
        ])
    func otherProtocolsAreNoticed(name: String, value: String) throws {
        let variables = [endpoint: "http://collector:4317", name: value]
        let settings = try TracingSettings(environment: variables)
        #expect(!settings.isEnabled && settings.notices.count == 1)
        #expect(settings.notices[0].contains("\(name)=\(value) is not supported"))
        #expect(settings.notices[0].contains("set it to http/json, and the endpoint to the HTTP port"))

        let configured = try TracingSettings(environment: variables, configured: .init(endpoint: "http://a/v1/traces"))
        #expect(configured.isEnabled && configured.notices.count == 1)
    }

    @Test("The protocol http/json is accepted, and that for traces has precedence")
    func acceptsTheProtocol() throws {
        #expect(try read(["OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"]).isEnabled)
        #expect(
            try read(["OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/json"])
                .isEnabled)
        #expect(try read(["OTEL_EXPORTER_OTLP_COMPRESSION": "gzip"]).notices.count == 1)
    }

    @Test("A ratio outside of 0 to 1 is an error", arguments: ["2", "-0.1", "half", "nan"])
    func rejectsRatios(ratio: String) throws {
        let error = try #require(
            failure(of: ["OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": ratio]))

        #expect(error.key == "OTEL_TRACES_SAMPLER_ARG")
    }

    @Test(
        "An invalid header field is an error without its content",
        arguments: [
            "hidden", "=hidden", "a b=hidden", "x=hidden%", "x=hidden%0A", "x=", "Host=hidden", "content-length=hidden",
        ])
    func hidesHeaders(value: String) throws {
        let error = try #require(failure(of: ["OTEL_EXPORTER_OTLP_HEADERS": "good=1,\(value)"]))

        #expect(error.key == "OTEL_EXPORTER_OTLP_HEADERS")
        #expect(error.problem.contains("entry 2"))
        #expect(!error.description.contains("hidden"))
    }

    @Test("Descriptions and dumps of settings contain neither header values nor the query of the endpoint")
    func hidesSecrets() throws {
        let settings = try read([
            tracesEndpoint: "http://a/?key=hidden", "OTEL_EXPORTER_OTLP_HEADERS": "authorization=hidden",
        ])

        var dumped = ""
        dump(settings, to: &dumped)
        #expect(!"\(settings) \(String(reflecting: settings)) \(dumped)".contains("hidden"))
        #expect("\(settings.headers)" == "authorization: •••")
    }

    @Test("A headers file has one field per line, and an error names the line without its content")
    func readsHeadersFiles() throws {
        let key = "telemetry.traces.headersFile"
        let headers = try SecretHeaders(file: Array("# token\nAuthorization: Bearer x\n\nX-Tenant: a\n".utf8), key: key)
        let error = #expect(throws: TracingSettingsError.self) {
            try SecretHeaders(file: Array("X-A: 1\nhidden\n".utf8), key: key)
        }

        #expect(headers.exposed.fields == [.init("Authorization", "Bearer x"), .init("X-Tenant", "a")])
        #expect(error?.key == key)
        #expect(error?.description.contains("line 2") == true && error?.description.contains("hidden") == false)
    }
}
