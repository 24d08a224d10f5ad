import CacheCore

extension Setting<OriginSettings> {
    /// Settings of fills: window size, end, retry and circuit breaker. `upstream` sets them for all origins.
    static var fills: [Setting] {
        [
            Setting(
                "readAhead", \.readAheadBytes, .size(atLeast: 64 << 10, example: "16MiB"), "maximum window of a fill"),
            Setting(
                "finishIfRemaining", \.finishIfRemainingBytes, .size(atLeast: 0, example: "8MiB"),
                "a fill without readers is finished if at most this much is missing"),
            Setting(
                "finishIfRemainingPercent", orNone: \.finishIfRemainingPercent, .count(0...100, example: 10),
                "the same, as a percentage of the window"),
            Setting(
                "gapMerge", \.gapMergeBytes, .size(0...OriginSettings.maxGapMergeBytes, example: "64KiB"),
                "cached ranges shorter than this are refetched with adjacent gaps"),
            Setting(
                "speculative", \.speculativeBytes, .size(0...OriginSettings.maxSpeculativeBytes, example: "2MiB"),
                "bytes fetched beyond the requested range"),
            Setting("hedging", \.hedging, .flag, "sends a second request if the first byte is late"),
        ] + circuitBreaker
    }

    /// The setting `circuitBreaker` is a word, or a group of settings. The word has precedence if both are set.
    private static var circuitBreaker: [Setting] {
        let form = SettingCodec<Bool>.circuit
        return [
            Setting(
                "circuitBreaker", "off: requests are sent regardless of failures",
                read: { lookup, path, settings throws(SettingsError) in
                    let isOn = try lookup.value(path, as: form, or: settings.circuitBreaker != nil)
                    settings.circuitBreaker = isOn ? settings.circuitBreaker ?? .init() : nil
                },
                written: { settings in settings.circuitBreaker == nil ? .scalar(form.write(false)) : nil }),
            circuitPart(
                "failures", \.failures, .count(OriginSettings.circuitFailures, example: 10),
                "consecutive failures that open the circuit"),
            circuitPart(
                "pause", \.pause, .circuitPause, "time without requests while open, longer after each failed probe"),
        ]
    }

    /// One member of the group `circuitBreaker`. `off` in another source overrides it.
    private static func circuitPart<Value>(
        _ name: String, _ part: WritableKeyPath<OriginSettings.CircuitBreaker, Value>, _ form: SettingCodec<Value>,
        _ meaning: String
    ) -> Setting {
        Setting(
            "circuitBreaker.\(name)", meaning,
            read: { lookup, path, settings throws(SettingsError) in
                guard lookup.text(path) != nil else { return }
                var breaker = settings.circuitBreaker ?? OriginSettings.CircuitBreaker()
                breaker[keyPath: part] = try lookup.value(path, as: form, or: breaker[keyPath: part])
                let word = SettingsPath(path.components.dropLast())
                if try lookup.value(word, as: .circuit, or: true) { settings.circuitBreaker = breaker }
            },
            written: { settings in settings.circuitBreaker.map { .scalar(form.write($0[keyPath: part])) } })
    }
}

extension SettingCodec<Bool> {
    /// `on` or `off`; the group has settings of its own.
    fileprivate static var circuit: SettingCodec {
        SettingCodec(
            name: "on, off, or a mapping with failures and pause", example: "off", parse: flag.parse,
            write: { $0 ? "on" : "off" })
    }
}

extension SettingCodec<Duration> {
    /// Time that the circuit stays open.
    fileprivate static var circuitPause: SettingCodec {
        duration(example: "2s").limited(name: "a duration up to 1h", example: "2s") {
            $0 <= OriginSettings.maxCircuitPause
        }
    }
}
