import CacheCore

extension TracingSettings {
    /// Reads the variables of OpenTelemetry (OpenTelemetry specification, "Environment Variable Specification" and
    /// "OpenTelemetry Protocol Exporter"). Empty variables count as absent; `configured` has precedence.
    ///
    /// Without an endpoint, or with `OTEL_TRACES_EXPORTER=none` or `OTEL_SDK_DISABLED=true`, tracing is disabled and
    /// no other variable is read. Unlike other SDKs, an invalid value is an error, because a service that silently
    /// exports nothing is of no use.
    package init(
        environment: [String: String], configured: Configured = Configured()
    ) throws(TracingSettingsError) {
        self.init()
        let variables = Variables(environment: environment)
        guard try !isDisabled(by: variables) else { return }
        endpoint = try Self.endpoint(variables, configured)
        guard endpoint != nil else { return }
        guard try isProtocolSupported(variables, configured) else {
            endpoint = nil
            return
        }
        try Self.checkUnsupported(variables)
        if variables["OTEL_EXPORTER_OTLP_", "COMPRESSION"] != nil {
            notices.append("OTEL_EXPORTER_OTLP_COMPRESSION has no effect: spans are sent uncompressed.")
        }
        headers = try Self.headers(variables, configured)
        timeout = try Self.timeout(variables, configured)
        interval = try Self.milliseconds(variables, "OTEL_BSP_SCHEDULE_DELAY", from: 1) ?? interval
        sampler = try Self.sampler(variables, configured)
        try readResource(variables)
    }

    /// Whether a variable disables tracing. Of the other values of OTEL_SDK_DISABLED, only `false` is accepted without
    /// a notice ("Boolean").
    private mutating func isDisabled(by variables: Variables) throws(TracingSettingsError) -> Bool {
        switch variables["OTEL_SDK_DISABLED"].map(FieldText.lowered) {
        case "true": return true
        case nil, "false": break
        default: notices.append("OTEL_SDK_DISABLED is neither true nor false and has no effect.")
        }
        switch variables["OTEL_TRACES_EXPORTER"] {
        case "none": return true
        case nil, "otlp": return false
        case let other?:
            throw TracingSettingsError("OTEL_TRACES_EXPORTER", "\"\(other)\" is not supported; set it to otlp or none")
        }
    }

    /// The most specific endpoint. The default applies only if the exporter is selected explicitly.
    private static func endpoint(
        _ variables: Variables, _ configured: Configured
    ) throws(TracingSettingsError) -> OTLPEndpoint? {
        if let url = configured.endpoint { return try OTLPEndpoint(url: url, key: "telemetry.traces.endpoint") }
        let (specific, general) = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
        if let url = variables[specific] { return try OTLPEndpoint(url: url, key: specific) }
        if let base = variables[general] { return try OTLPEndpoint(base: base, key: general) }
        guard variables["OTEL_TRACES_EXPORTER"] != nil else { return nil }
        return try OTLPEndpoint(base: OTLPEndpoint.standardBase, key: general)
    }

    /// JSON over HTTP is the only protocol, and the default. Operators of clusters set the other protocols for all
    /// programs, so that they disable tracing with a notice. A configured endpoint has precedence.
    private mutating func isProtocolSupported(
        _ variables: Variables, _ configured: Configured
    ) throws(TracingSettingsError) -> Bool {
        guard let (name, value) = variables["OTEL_EXPORTER_OTLP_", "PROTOCOL"], value != "http/json" else {
            return true
        }
        guard ["grpc", "http/protobuf"].contains(value) else {
            throw TracingSettingsError(name, "\"\(value)\" is no protocol of OpenTelemetry; set it to http/json")
        }
        let remedy = "set it to http/json, and the endpoint to the HTTP port of the receiver"
        guard configured.endpoint == nil else {
            notices.append("\(name)=\(value) has no effect: spans are sent as http/json to the configured endpoint.")
            return true
        }
        notices.append("\(name)=\(value) is not supported, and no spans are sent; \(remedy).")
        return false
    }

    /// Variables that would be needed to reach the receiver.
    private static func checkUnsupported(_ variables: Variables) throws(TracingSettingsError) {
        for suffix in ["CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY"] {
            guard let (name, _) = variables["OTEL_EXPORTER_OTLP_", suffix] else { continue }
            let remedy =
                suffix == "CERTIFICATE"
                ? "add the authority to the system's certificates" : "authenticate with header fields"
            throw TracingSettingsError(name, "is not supported; unset it and \(remedy)")
        }
    }

    private static func headers(
        _ variables: Variables, _ configured: Configured
    ) throws(TracingSettingsError) -> SecretHeaders {
        if let headers = configured.headers { return headers }
        guard let (name, value) = variables["OTEL_EXPORTER_OTLP_", "HEADERS"] else { return SecretHeaders() }
        var headers = HeaderList()
        for (index, pair) in try pairs(value, name).enumerated() {
            guard FieldText.isToken(pair.key), FieldText.isValue(pair.value), !pair.value.isEmpty else {
                throw TracingSettingsError(name, "entry \(index + 1) is not a valid header field; write name=value")
            }
            guard !OriginSettings.forbiddenHeaders.contains(where: { HeaderList.same($0, pair.key) }) else {
                throw TracingSettingsError(name, "entry \(index + 1) is a field that Larder sets itself; remove it")
            }
            headers.set(pair.key, pair.value)
        }
        return SecretHeaders(headers)
    }

    /// The time limit; 0 means no limit ("Timeout"), and becomes one hour.
    private static func timeout(
        _ variables: Variables, _ configured: Configured
    ) throws(TracingSettingsError) -> Duration {
        if let timeout = configured.timeout { return timeout }
        guard let (name, _) = variables["OTEL_EXPORTER_OTLP_", "TIMEOUT"] else { return .seconds(10) }
        let timeout = try milliseconds(variables, name, from: 0) ?? .zero
        return timeout == .zero ? .seconds(3600) : timeout
    }

    /// A number of milliseconds up to one hour ("Duration"); nil if the variable is absent.
    private static func milliseconds(
        _ variables: Variables, _ name: String, from least: Int64
    ) throws(TracingSettingsError) -> Duration? {
        guard let value = variables[name] else { return nil }
        guard let number = Int64(value), (least...3_600_000).contains(number) else {
            throw TracingSettingsError(name, "\"\(value)\" must be a number of milliseconds from \(least) to 3600000")
        }
        return .milliseconds(number)
    }

    /// The samplers of OTEL_TRACES_SAMPLER, except the remote ones.
    private static func sampler(
        _ variables: Variables, _ configured: Configured
    ) throws(TracingSettingsError) -> TraceSampler {
        if let ratio = configured.sampleRatio { return TraceSampler(ratio: ratio) }
        let name = variables["OTEL_TRACES_SAMPLER"] ?? "parentbased_always_on"
        let isParentBased = name.hasPrefix("parentbased_")
        switch isParentBased ? String(name.dropFirst("parentbased_".count)) : name {
        case "always_on": return TraceSampler(ratio: 1, isParentBased: isParentBased)
        case "always_off": return TraceSampler(ratio: 0, isParentBased: isParentBased)
        case "traceidratio":
            let argument = variables["OTEL_TRACES_SAMPLER_ARG"]
            guard let ratio = Double(argument ?? "1"), (0...1).contains(ratio) else {
                throw TracingSettingsError(
                    "OTEL_TRACES_SAMPLER_ARG", "\"\(argument ?? "")\" must be a number from 0 to 1")
            }
            return TraceSampler(ratio: ratio, isParentBased: isParentBased)
        default:
            throw TracingSettingsError(
                "OTEL_TRACES_SAMPLER",
                "\"\(name)\" is not supported; set it to always_on, always_off or traceidratio, with or without "
                    + "parentbased_ in front")
        }
    }

    /// Service name and attributes of the resource. OTEL_SERVICE_NAME has precedence over `service.name`.
    private mutating func readResource(_ variables: Variables) throws(TracingSettingsError) {
        let name = "OTEL_RESOURCE_ATTRIBUTES"
        for pair in try Self.pairs(variables[name] ?? "", name) {
            if pair.key == "service.name" {
                serviceName = pair.value
            } else {
                resourceAttributes.removeAll { $0.key == pair.key }
                resourceAttributes.append(.init(pair.key, .string(pair.value)))
            }
        }
        serviceName = variables["OTEL_SERVICE_NAME"] ?? serviceName
    }

    /// The entries `key=value` of a list, with percent-encoded values (W3C Baggage §3.3, without properties). Errors
    /// name the position only, because an invalid entry may be a credential.
    private static func pairs(
        _ list: String, _ name: String
    ) throws(TracingSettingsError) -> [(key: String, value: String)] {
        var pairs: [(key: String, value: String)] = []
        for (index, entry) in list.split(separator: ",", omittingEmptySubsequences: false).enumerated() {
            let entry = FieldText.trimmed(entry)
            guard !entry.isEmpty else { continue }
            guard let equals = entry.firstIndex(of: "="), equals != entry.startIndex else {
                throw TracingSettingsError(name, "entry \(index + 1) must have the form key=value")
            }
            let written = FieldText.trimmed(entry[entry.index(after: equals)...])
            guard let value = decoded(written) else {
                throw TracingSettingsError(
                    name, "entry \(index + 1) has an invalid value; encode special characters as %XX")
            }
            pairs.append((String(FieldText.trimmed(entry[..<equals])), value))
        }
        return pairs
    }

    /// The percent-decoded text; nil if an escape is incomplete or the bytes are not UTF-8.
    private static func decoded(_ text: Substring) -> String? {
        let parts = text.split(separator: "%", omittingEmptySubsequences: false).dropFirst()
        let isHexadecimal: (UInt8) -> Bool = { FieldText.isDigit($0) || (97...102).contains($0 | 0x20) }
        guard parts.allSatisfy({ $0.utf8.count > 1 && $0.utf8.prefix(2).allSatisfy(isHexadecimal) }) else {
            return nil
        }
        return String(validating: PercentEncoding.decoded(text), as: UTF8.self)
    }

    /// Environment variables without empty ones.
    private struct Variables {
        let environment: [String: String]

        subscript(name: String) -> String? {
            environment[name].map { String(FieldText.trimmed($0[...])) }.flatMap { $0.isEmpty ? nil : $0 }
        }

        /// The variable for traces, or the one for all signals.
        subscript(prefix: String, suffix: String) -> (name: String, value: String)? {
            for name in [prefix + "TRACES_" + suffix, prefix + suffix] {
                if let value = self[name] { return (name, value) }
            }
            return nil
        }
    }
}
