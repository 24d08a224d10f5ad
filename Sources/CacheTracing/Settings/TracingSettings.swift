/// All settings of tracing, validated.
package struct TracingSettings: Hashable, Sendable {
    /// Settings from flags and the configuration file, which override the environment variables of OpenTelemetry.
    package struct Configured: Hashable, Sendable {
        /// The URL of `/v1/traces`; nil: not configured.
        package var endpoint: String?
        /// Nil: no headers file is configured.
        package var headers: SecretHeaders?
        /// Nil: not configured.
        package var sampleRatio: Double?
        /// Nil: not configured.
        package var timeout: Duration?

        package init(
            endpoint: String? = nil, headers: SecretHeaders? = nil, sampleRatio: Double? = nil, timeout: Duration? = nil
        ) {
            self.endpoint = endpoint
            self.headers = headers
            self.sampleRatio = sampleRatio
            self.timeout = timeout
        }
    }

    /// The URL to which spans are posted; nil: tracing is disabled.
    package var endpoint: OTLPEndpoint?
    /// Fields of each request to the endpoint, for example `Authorization`.
    package var headers = SecretHeaders()
    /// By default all traces are recorded, except those that the caller does not record.
    package var sampler = TraceSampler(ratio: 1)
    /// The time limit for one request.
    package var timeout = Duration.seconds(10)
    /// The longest time before an ended span is sent.
    package var interval = Duration.seconds(5)
    /// The resource attribute `service.name`.
    package var serviceName = "larder"
    /// Further attributes of the resource.
    package var resourceAttributes: [SpanRecord.Attribute] = []
    /// Sentences for the log about variables that have no effect.
    package var notices: [String] = []

    /// Tracing is disabled.
    package init() {}

    /// Whether any span can be recorded and sent.
    package var isEnabled: Bool { endpoint != nil && !sampler.isAlwaysOff }

    /// The attributes of the resource (OpenTelemetry semantic conventions, "Service"). `version` is the version of
    /// Larder.
    func resource(version: String) -> [SpanRecord.Attribute] {
        let service: [SpanRecord.Attribute] = [
            .init("service.name", .string(serviceName)), .init("service.version", .string(version)),
        ]
        return service + resourceAttributes.filter { own in !service.contains { $0.key == own.key } }
    }
}
