package import CacheCore

/// Settings as the catalog and the fleet store them: JSON documents with the members of the API's documents.
package enum StoredSettings {
    /// The text for an origin. It is always sealed, because its headers are secrets: a list of pairs, in order.
    package static func text(of settings: OriginSettings) -> String {
        let headers = settings.headers.fields.map { JSON.array([.string($0.name), .string($0.value)]) }
        return OriginSettings.settings.json(of: settings, after: ["headers": .array(headers)]).text
    }

    /// Decodes the settings of an origin. Absent members get their defaults. Throws `storageCorrupt` if the text has
    /// another form.
    package static func origin(_ text: String) throws(CacheError) -> OriginSettings {
        var settings = OriginSettings(baseURL: "")
        let json = try read(text, besides: ["headers"], into: &settings, OriginSettings.settings) {
            $0["readTimeout"] == nil ? $0 : converted(origin: $0)
        }
        settings.headers = try RowCoding.headers(json: json["headers"]?.text ?? "")
        return settings
    }

    /// The text for the policy.
    package static func text(of policy: PolicySettings) -> String {
        let quotas = policy.tagQuotas.sorted { $0.key < $1.key }
            .map { JSON.Member($0.key, Quota.settings.json(of: $0.value)) }
        return PolicySettings.settings.json(of: policy, after: ["tagQuotas": .object(quotas)]).text
    }

    /// Decodes the policy; as ``origin(_:)``.
    package static func policy(_ text: String) throws(CacheError) -> PolicySettings {
        var policy = PolicySettings()
        let json = try read(text, besides: ["tagQuotas"], into: &policy, PolicySettings.settings) {
            $0["grace"] == nil ? $0 : converted(policy: $0)
        }
        for member in json["tagQuotas"]?.members ?? [] {
            var quota = Quota()
            do { try Quota.settings.read(member.value, into: &quota) } catch { throw RowCoding.corrupt("a quota") }
            policy.tagQuotas[member.key] = quota
        }
        return policy
    }

    /// Parses a document, converts it to the current form, and reads its settings; returns the converted document.
    private static func read<Root>(
        _ text: String, besides others: Set<String>, into root: inout Root, _ settings: [Setting<Root>],
        converting: (JSON) -> JSON
    ) throws(CacheError) -> JSON {
        do {
            let json = converting(try JSONParser.parse(text.utf8))
            try settings.read(json, into: &root, besides: others)
            return json
        } catch {
            throw CacheError(.storageCorrupt, "The catalog contains invalid settings.", cause: error)
        }
    }
}

/// Documents of the versions before the migration v11: durations in milliseconds, absent members for nil, and a few
/// names and forms of their own.
extension StoredSettings {
    private static func converted(origin old: JSON) -> JSON {
        var new = old
        for (from, to) in [
            ("caFile", "tls.caFile"), ("verify", "tls.verify"), ("verification", "verify"),
            ("fallbackAsset", "fallback.assetId"), ("fallbackFile", "fallback.file"),
        ] { new.move(from, to) }
        for (from, to) in [
            ("freshnessTTL", "freshness.ttlSeconds"), ("staleIfError", "staleIfErrorSeconds"),
            ("readTimeout", "timeouts.readSeconds"), ("timeouts.connect", "timeouts.connectSeconds"),
            ("timeouts.firstByte", "timeouts.firstByteSeconds"), ("timeouts.idle", "timeouts.idleSeconds"),
            ("timeouts.total", "timeouts.totalSeconds"), ("circuitBreaker.pause", "circuitBreaker.pauseSeconds"),
            ("negativeCaching.longest", "negativeCaching.maxSeconds"),
        ] { new.move(from, to, \.seconds) }
        for timeout in ["connect", "firstByte", "idle", "total"] where old["timeouts"]?[timeout] == nil {
            new.insert(.null, at: ["timeouts", timeout + "Seconds"])
        }
        for group in ["circuitBreaker", "negativeCaching"] where new[group] == [:] {
            new.insert(.bool(false), at: [group])
        }
        if let kind = old["keyQuery"]?["kind"], case .string(let name) = kind {
            let names = old["keyQuery"]?["names"] ?? []
            new.insert(name == "all" || name == "none" ? kind : [name: names], at: ["keyQuery"])
        }
        return new
    }

    private static func converted(policy old: JSON) -> JSON {
        var new = old
        for (from, to) in [
            ("maxIdle", "maxIdleSeconds"), ("maxAge", "maxAgeSeconds"), ("grace", "graceSeconds"),
        ] { new.move(from, to, \.seconds) }
        new.move("minUses", "admission.minUses")
        if old["capacityBytes"] == nil { new.insert(.null, at: ["capacityBytes"]) }
        return new
    }
}

extension JSON {
    /// The members of an object; nil for other values.
    fileprivate var members: [Member]? { if case .object(let members) = self { members } else { nil } }
    /// A number of milliseconds in seconds.
    fileprivate var seconds: JSON {
        // Earlier versions had no upper limit.
        guard case .integer(let milliseconds) = self else { return self }
        return .seconds(min(.milliseconds(milliseconds), OriginSettings.maxLifetime))
    }

    /// Moves the member at one dotted path to another, if it exists, and converts its value.
    fileprivate mutating func move(_ from: String, _ to: String, _ convert: (JSON) -> JSON = { $0 }) {
        let (source, target) = (from.split(separator: ".").map(String.init), to.split(separator: ".").map(String.init))
        guard let value = source.reduce(self, { $0?[$1] }) else { return }
        self = merged(with: source.reversed().reduce(.null) { [$1: $0] })
        insert(convert(value), at: target)
    }
}
