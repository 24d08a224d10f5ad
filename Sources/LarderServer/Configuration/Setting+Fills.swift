import CacheCore

extension Setting<OriginSettings> {
    /// How windows are cut, ended and begun again; `upstream` gives them to all origins at once, too.
    static var fills: [Setting] {
        [
            Setting("readAhead", \.readAheadBytes, .size(atLeast: 64 << 10, example: "16MiB"), "the largest window"),
            Setting(
                "finishIfRemaining", \.finishIfRemainingBytes, .size(atLeast: 0, example: "8MiB"),
                "of a window its last reader left is finished"),
            Setting(
                "finishIfRemainingPercent", orNone: \.finishIfRemainingPercent, .count(0...100, example: 10),
                "the same as a part of the window"),
            Setting(
                "gapMerge", \.gapMergeBytes, .size(0...OriginSettings.maxGapMergeBytes, example: "64KiB"),
                "cached runs shorter than this are fetched with the gaps beside them"),
            Setting(
                "speculative", \.speculativeBytes, .size(0...OriginSettings.maxSpeculativeBytes, example: "2MiB"),
                "fetched beyond what readers asked for"),
            Setting("hedging", \.hedging, .flag, "a late first byte is asked for a second time"),
        ] + circuitBreaker
    }

    /// One word, or a group; the word wins where both are there.
    private static var circuitBreaker: [Setting] {
        let form = SettingsForm<Bool>.circuit
        return [
            Setting(
                "circuitBreaker", "off: the origin is asked however often it fails",
                read: { lookup, path, settings throws(SettingsError) in
                    let isOn = try lookup.value(path, as: form, or: settings.circuitBreaker != nil)
                    settings.circuitBreaker = isOn ? settings.circuitBreaker ?? .init() : nil
                },
                written: { settings in settings.circuitBreaker == nil ? .scalar(form.write(false)) : nil }),
            circuitPart(
                "failures", \.failures, .count(OriginSettings.circuitFailures, example: 10),
                "failures in a row that open the circuit"),
            circuitPart(
                "pause", \.pause, .circuitPause, "nothing is asked for so long then, longer with each failed probe"),
        ]
    }

    private static func circuitPart<Value>(
        _ name: String, _ part: WritableKeyPath<OriginSettings.CircuitBreaker, Value>, _ form: SettingsForm<Value>,
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

extension SettingsForm<Bool> {
    fileprivate static var circuit: SettingsForm {
        SettingsForm(
            name: "on, off, or a mapping with failures and pause", example: "off", parse: flag.parse,
            write: { $0 ? "on" : "off" })
    }
}

extension SettingsForm<Duration> {
    fileprivate static var circuitPause: SettingsForm {
        duration(example: "2s").limited(name: "a duration up to 1h", example: "2s") {
            $0 <= OriginSettings.maxCircuitPause
        }
    }
}
