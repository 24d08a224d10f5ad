import CacheCore
import Foundation

/// The place that a setting's value comes from.
enum SettingSource: String, Hashable, Sendable, CaseIterable {
    case flag, environment, file
    /// No place contains the setting.
    case `default`
}

/// The values of all settings as written in flags, environment and file. The first of these that contains a setting
/// wins.
struct SettingsLayers {
    /// The paths that flags and the file contain, including groups.
    let paths: [SettingsPath]
    let lookup: SettingsLookup
    private let layers: [(source: SettingSource, layer: SettingsLayer)]

    /// Throws an error with the name of a flag that is not a setting, or of an unknown variable of TLS or of the access.
    init(
        flags: [(name: String, text: String)], environment: [String: String], file: ConfigurationFile?
    ) throws(SettingsError) {
        var overrides: [SettingsPath: SettingText] = [:]
        var paths = file?.paths ?? []
        for flag in flags {
            let path = SettingsPath(dotted: flag.name)
            overrides[path] = try Self.override(flag.text, at: path)
            paths.append(path)
        }
        layers = [
            (.flag, .values(overrides)),
            (.environment, .variables(try Self.variables(of: environment))),
            (.file, .values(file?.values ?? [:])),
        ]
        self.paths = paths
        lookup = SettingsLookup(layers: layers.map(\.layer))
    }

    /// The place of the setting's value.
    func source(of path: SettingsPath, isList: Bool) -> SettingSource {
        layers.first { $0.layer.value(of: path, isList: isList) != nil }?.source ?? .default
    }

    /// A flag's text as a value; list items are separated by commas.
    private static func override(_ text: String, at path: SettingsPath) throws(SettingsError) -> SettingText {
        switch try SettingsSchema.place(of: path.components) {
        case .group: throw SettingsError(path.dotted, "is a group of settings, not a single setting")
        case .value(isList: false): .scalar(text)
        case .value(isList: true):
            .list(text.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) })
        }
    }

    /// The `LARDER_…` variables with long names. Empty variables count as absent, because Compose files pass unset
    /// variables as empty ones.
    private static func variables(of environment: [String: String]) throws(SettingsError) -> [String: String] {
        var variables = environment.filter { $0.key.hasPrefix("LARDER_") && !$0.value.isEmpty }
        try SettingsSchema.refuseStrangers(in: variables.keys)
        for suffix in ["TOKEN", "TOKEN_FILE", "READ_TOKEN", "READ_TOKEN_FILE"] {
            guard let value = variables["LARDER_\(suffix)"], variables["LARDER_ACCESS_\(suffix)"] == nil else {
                continue
            }
            variables["LARDER_ACCESS_\(suffix)"] = value
        }
        return variables
    }
}
