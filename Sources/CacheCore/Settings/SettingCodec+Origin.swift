extension SettingCodec<String> {
    /// A path relative to another configured directory.
    static var insidePath: SettingCodec {
        text("a relative path", example: "media.txt").limited(
            "a relative path without . and ..", schema: ["maxLength": 1024], where: OriginSettings.isInside(path:))
    }

    /// A header field name (RFC 9110 §5.1).
    static var fieldName: SettingCodec {
        text("a name", example: "User-Agent").limited(
            "a header field's name", documentName: "a header field's name, of at most 256 bytes and not *,"
        ) { FieldText.isToken($0) && $0.utf8.count <= 256 && $0 != "*" }
    }

    /// A media type, or all subtypes of a type (RFC 9110 §8.3.1).
    static var mediaType: SettingCodec {
        text("a name", example: "video/*").limited(
            "a media type or type/*", where: OriginSettings.StoreRules.isPattern)
    }

    /// An http or https URL without user, query and fragment. Configurations may have a slash at the end, which is
    /// removed.
    static var baseURL: SettingCodec {
        var codec = SettingCodec(
            "an http or https URL without user, query and fragment", example: "https://media.example/library",
            parse: { text in
                let scheme = text.prefix { $0 != ":" }.lowercased()
                let url = scheme + text.dropFirst(scheme.count)
                return url.hasSuffix("/") ? String(url.dropLast()) : url
            }, write: { $0 })
        codec.decode = { json, path throws(CacheError) in
            guard case .string(let text) = json else { throw SettingFault(expecting: "a string").error(at: path) }
            return text
        }
        codec.fault = { url in BaseURL.fault(in: url).map { SettingFault($0) } }
        return codec
    }
}

extension SettingCodec<Duration> {
    /// A timeout of at most one day.
    static func wait(_ example: String) -> SettingCodec {
        duration("a duration up to 1d", upTo: .seconds(86_400), example: example)
    }

    /// The first pause of an open circuit.
    static var circuitPause: SettingCodec { duration("a duration up to 1h", upTo: .seconds(3600), example: "2s") }
}

extension SettingCodec<Int> {
    /// The number of consecutive failures that open a circuit.
    static var circuitFailures: SettingCodec { count(1...1000, example: 10) }
}

extension SettingCodec<OriginSettings.Freshness> {
    /// `respect`, `explicit`, or a lifetime. In JSON documents the lifetime is `{"ttlSeconds": …}`.
    static var freshness: SettingCodec {
        let lifetime = SettingCodec<Duration>.lifetime(allowsZero: true, example: "1h")
        var codec = SettingCodec(
            "respect, explicit or a duration", example: "1h",
            parse: { text in
                switch text {
                case "respect": .respect
                case "explicit": .explicit
                default: lifetime.parse(text).map { .ttl($0) }
                }
            },
            write: { freshness in
                switch freshness {
                case .respect: "respect"
                case .explicit: "explicit"
                case .ttl(let length): lifetime.write(length) ?? ""
                }
            })
        codec.decode = { json, path throws(CacheError) in
            switch json {
            case "respect": return .respect
            case "explicit": return .explicit
            case .object:
                let form = try json.decode(FreshnessForm.self, at: path)
                return .ttl(try lifetime.required(form.ttlSeconds, at: path + ".ttlSeconds"))
            default:
                throw SettingFault(expecting: "\"respect\", \"explicit\" or {\"ttlSeconds\": …}").error(at: path)
            }
        }
        codec.schema = [:]
        codec.encode = { freshness in
            if case .ttl(let length) = freshness {
                ["ttlSeconds": lifetime.encode(length)]
            } else {
                .string(freshness == .explicit ? "explicit" : "respect")
            }
        }
        codec.fault = { freshness in
            guard case .ttl(let length) = freshness else { return nil }
            return lifetime.fault(length).map { SettingFault(at: ".ttlSeconds", $0.message) }
        }
        return codec
    }
}

extension SettingCodec<Duration?> {
    /// The time of stale use; nil: the response's own directives apply.
    static var staleness: SettingCodec {
        SettingCodec<Duration>.lifetime(allowsZero: true, example: "1h").optional(none: "respect")
    }

    /// The longest lifetime of an error, or `none`. In JSON documents `{"maxSeconds": …}` or false.
    static var negativeCaching: SettingCodec {
        let lifetime = SettingCodec<Duration>.lifetime(example: "5m")
        var codec = lifetime.orNone
        (codec.unit, codec.isNullable, codec.schema) = ("", false, [:])
        codec.decode = { json, path throws(CacheError) in
            if json == .bool(false) { return nil }
            guard case .object = json else {
                throw SettingFault(expecting: "false or {\"maxSeconds\": …}").error(at: path)
            }
            let form = try json.decode(NegativeCachingForm.self, at: path)
            return try lifetime.required(form.maxSeconds, at: path + ".maxSeconds")
        }
        codec.encode = { longest in longest.map { ["maxSeconds": lifetime.encode($0)] } ?? .bool(false) }
        codec.fault = { longest in
            longest.flatMap(lifetime.fault).map { SettingFault(at: ".maxSeconds", $0.message) }
        }
        return codec
    }
}

extension SettingCodec<OriginSettings.KeyQuery> {
    /// `all`, `none`, or lists of names, which configurations contain as settings of their own.
    static var keyQuery: SettingCodec {
        let forms = "\"all\", \"none\", {\"include\": […]} or {\"exclude\": […]}"
        let names = SettingCodec<String>.text("a string", example: "").list(upTo: .max)
        var codec = SettingCodec(
            "all, none, or a mapping with include or exclude", example: "none", documentName: forms,
            parse: { text in text == "all" ? .all : text == "none" ? OriginSettings.KeyQuery.none : nil },
            write: { rule in rule == .all ? "all" : rule == OriginSettings.KeyQuery.none ? "none" : nil },
            decode: { json in json == "all" ? .all : json == "none" ? OriginSettings.KeyQuery.none : nil },
            encode: { rule in
                switch rule {
                case .all: "all"
                case .none: "none"
                case .include(let list): ["include": names.encode(list)]
                case .exclude(let list): ["exclude": names.encode(list)]
                }
            })
        codec.decode = { [decode = codec.decode] json, path throws(CacheError) in
            guard case .object = json else { return try decode(json, path) }
            let form = try json.decode(KeyQueryForm.self, at: path)
            switch (form.include, form.exclude) {
            case (let list?, nil): return .include(try names.decode(list, path + ".include"))
            case (nil, let list?): return .exclude(try names.decode(list, path + ".exclude"))
            default: throw SettingFault(at: ".include", "Either include or exclude is expected here.").error(at: path)
            }
        }
        codec.fault = { rule in
            guard let list = rule.names,
                !(1...256).contains(list.count) || !list.allSatisfy({ (1...256).contains($0.utf8.count) })
            else { return nil }
            return SettingFault("The list must have 1 to 256 names of query parameters, each with 1 to 256 bytes.")
        }
        return codec
    }
}

extension SettingCodec<OriginSettings.Fallback?> {
    /// `{"assetId": …}`, `{"file": …}` or null.
    static var fallback: SettingCodec {
        SettingCodec(
            isNullable: true,
            decode: { json, path throws(CacheError) in
                if json == .null { return nil }
                let form = try json.decode(FallbackForm.self, at: path)
                let fault: String
                switch (form.assetId, form.file) {
                case (let text?, nil):
                    if let id = AssetID(text) { return .asset(id) }
                    fault = "The ID has 32 hexadecimal digits."
                case (nil, let file?): return .file(file)
                default: fault = "Either assetId or file is expected here."
                }
                throw SettingFault(at: ".assetId", fault).error(at: path)
            },
            encode: { fallback in
                switch fallback {
                case .asset(let id): ["assetId": .string(id.description)]
                case .file(let path): ["file": .string(path)]
                case nil: .null
                }
            },
            fault: { fallback in
                guard case .file(let path) = fallback else { return nil }
                return SettingCodec<String>.insidePath.fault(path).map { SettingFault(at: ".file", $0.message) }
            })
    }
}

extension SettingCodec<OriginSettings.CircuitBreaker?> {
    /// `{"failures": …, "pauseSeconds": …}`, where absent members get their defaults, or false.
    static var circuitBreaker: SettingCodec {
        // Only documents contain this group; configurations contain its members.
        let members: [Setting<OriginSettings.CircuitBreaker>] = [
            Setting("failures", \.failures, .circuitFailures, ""), Setting("pause", \.pause, .circuitPause, ""),
        ]
        return SettingCodec(
            decode: { json, path throws(CacheError) in
                if json == .bool(false) { return nil }
                guard case .object = json else {
                    throw SettingFault(expecting: "false or {\"failures\": …, \"pauseSeconds\": …}").error(at: path)
                }
                var breaker = OriginSettings.CircuitBreaker()
                try members.read(json, into: &breaker, at: path)
                return breaker
            },
            encode: { breaker in breaker.map { members.json(of: $0) } ?? .bool(false) },
            fault: { breaker in
                guard let breaker, let (setting, fault) = members.firstFault(of: breaker) else { return nil }
                return SettingFault(at: "." + (setting.member?.path ?? "") + fault.path, fault.message)
            })
    }
}

private struct FreshnessForm: Decodable { var ttlSeconds: JSON? }
private struct NegativeCachingForm: Decodable { var maxSeconds: JSON? }
private struct KeyQueryForm: Decodable { var include, exclude: JSON? }
private struct FallbackForm: Decodable { var assetId, file: String? }

extension SettingCodec {
    /// Converts a member that must be present.
    fileprivate func required(_ json: JSON?, at path: String) throws(CacheError) -> Value {
        guard let json else { throw SettingFault(expecting: documentName).error(at: path) }
        return try decode(json, path)
    }
}
