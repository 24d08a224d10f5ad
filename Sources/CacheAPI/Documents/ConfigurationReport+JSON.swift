import CacheCore

extension ConfigurationReport {
    /// The `Configuration` schema.
    var json: JSON {
        [
            "file": .text(file), "loadedAt": .instant(loadedAt), "error": .optional(fault) { $0.json },
            "needsRestart": .array(needsRestart.map(JSON.string)), "settings": .array(settings.map(\.json)),
        ]
    }
}

extension ConfigurationReport.Fault {
    fileprivate var json: JSON { ["key": .text(key), "message": .string(message), "at": .instant(at)] }
}

extension ConfigurationReport.Setting {
    fileprivate var json: JSON {
        let written: JSON =
            switch value {
            case .scalar(let text): .string(text)
            case .list(let items): .array(items.map(JSON.string))
            case nil: .null
            }
        return ["key": .string(key), "value": written, "source": .string(source)]
    }
}

extension ReloadResult {
    /// The `ReloadResult` schema.
    var json: JSON {
        [
            "loadedAt": .instant(loadedAt), "changed": .array(changed.map(JSON.string)),
            "needsRestart": .array(needsRestart.map(JSON.string)),
        ]
    }
}
