package import CacheCore
package import CacheEngine

/// The configuration of the service, as `/v1/configuration` shows and reloads it.
package protocol ConfigurationSource: Sendable {
    /// The settings of the last valid configuration, and the state of reloads.
    var report: ConfigurationReport { get }

    /// The state for metrics; nil: the configuration cannot be reloaded.
    var figures: ReloadFigures? { get }

    /// Reads the configuration again and applies it. Throws `.invalidField` with the key of the first invalid setting,
    /// or an error of the catalog; then nothing is applied.
    func reload() async throws(CacheError) -> ReloadResult
}

/// The settings of the last valid configuration, and the state of reloads.
package struct ConfigurationReport: Hashable, Sendable {
    /// One setting with its value as written in configurations.
    package struct Setting: Hashable, Sendable {
        /// The full dotted name.
        package var key: String
        /// Nil: there is none. Credentials are masked.
        package var value: SettingText?
        /// `flag`, `environment`, `file` or `default`.
        package var source: String

        package init(key: String, value: SettingText?, source: String) {
            self.key = key
            self.value = value
            self.source = source
        }
    }

    /// The reason why the last reading failed.
    package struct Fault: Hashable, Sendable {
        /// The name of the setting, or the path of the file; nil: no setting is at fault.
        package var key: String?
        package var message: String
        /// The time of the first reading with this result.
        package var at: Timestamp

        package init(key: String?, message: String, at: Timestamp) {
            self.key = key
            self.message = message
            self.at = at
        }
    }

    /// The path of the configuration file; nil: there is none.
    package var file: String?
    /// The time of the last successful reading.
    package var loadedAt: Timestamp?
    /// Nil after a successful reading.
    package var fault: Fault?
    /// The keys of changed settings that only the next start applies.
    package var needsRestart: [String]
    package var settings: [Setting]

    package init(
        file: String? = nil, loadedAt: Timestamp? = nil, fault: Fault? = nil, needsRestart: [String] = [],
        settings: [Setting] = []
    ) {
        self.file = file
        self.loadedAt = loadedAt
        self.fault = fault
        self.needsRestart = needsRestart
        self.settings = settings
    }
}

/// The result of a successful reload.
package struct ReloadResult: Hashable, Sendable {
    package var loadedAt: Timestamp
    /// The keys of the settings that have changed and are in force now.
    package var changed: [String]
    /// The keys of changed settings that only the next start applies.
    package var needsRestart: [String]

    package init(loadedAt: Timestamp, changed: [String], needsRestart: [String]) {
        self.loadedAt = loadedAt
        self.changed = changed
        self.needsRestart = needsRestart
    }
}

/// A configuration without settings that cannot be reloaded, for servers without a configuration.
package struct FixedConfiguration: ConfigurationSource {
    package init() {}

    package var report: ConfigurationReport { ConfigurationReport() }
    package var figures: ReloadFigures? { nil }

    package func reload() async throws(CacheError) -> ReloadResult {
        throw CacheError(.conflict, "This service has no configuration that can be reloaded.")
    }
}
