import CacheCore

/// The `Configuration` schema.
struct ConfigurationDocument: Codable {
    /// The `ConfigurationError` schema.
    struct Fault: Codable {
        var key: String?
        var message: String
        var at: Timestamp
    }

    /// The `ConfigurationSetting` schema.
    struct Setting: Codable {
        var key: String
        /// A text, a list of texts, or null.
        var value: JSON
        var source: String
    }

    var file: String?
    var loadedAt: Timestamp?
    var error: Fault?
    var needsRestart: [String]
    var settings: [Setting]
}

extension ConfigurationDocument {
    init(_ report: ConfigurationReport) {
        self.init(
            file: report.file, loadedAt: report.loadedAt,
            error: report.fault.map { Fault(key: $0.key, message: $0.message, at: $0.at) },
            needsRestart: report.needsRestart,
            settings: report.settings.map { Setting(key: $0.key, value: Self.value($0.value), source: $0.source) })
    }

    private static func value(_ value: SettingText?) -> JSON {
        switch value {
        case .scalar(let text): .string(text)
        case .list(let items): .array(items.map(JSON.string))
        case nil: .null
        }
    }
}

/// The `ReloadResult` schema.
struct ReloadDocument: Codable {
    var loadedAt: Timestamp
    var changed, needsRestart: [String]
}

extension ReloadDocument {
    init(_ result: ReloadResult) {
        self.init(loadedAt: result.loadedAt, changed: result.changed, needsRestart: result.needsRestart)
    }
}
