import CacheCore
import Foundation

/// The values of settings as written in one place.
enum SettingsLayer {
    /// Flags or a file: values by path.
    case values([SettingsPath: SettingText])
    /// Environment variables by name.
    case variables([String: String])

    /// The value of the setting; nil if the layer does not have it.
    func value(of path: SettingsPath, isList: Bool) -> SettingText? {
        switch (self, isList) {
        case (.values(let values), _):
            guard let value = values[path] else { return nil }
            if case .list = value { return isList ? value : nil }
            return isList ? nil : value
        case (.variables(let variables), true): return variables[path.variable].map { .list(Self.members(of: $0)) }
        case (.variables(let variables), false): return variables[path.variable].map { .scalar($0) }
        }
    }

    /// The items of a list in a variable, separated by commas.
    private static func members(of text: String) -> [String] {
        text.split(separator: ",", omittingEmptySubsequences: false)
            .map { $0.trimmingCharacters(in: .whitespacesAndNewlines) }
    }
}

/// Reads raw values by path from several layers: flags, environment, file. The first layer that has a value wins.
struct SettingsLookup {
    let layers: [SettingsLayer]

    /// The value of a single-value setting as written; nil if no layer has it.
    func text(_ path: SettingsPath) -> String? { value(of: path, isList: false)?.scalar }

    private func value(of path: SettingsPath, isList: Bool) -> SettingText? {
        layers.lazy.compactMap { $0.value(of: path, isList: isList) }.first
    }

    /// Reads the settings that a layer has. Throws an error with the key of the first value that is not permitted.
    ///
    /// - Parameter group: The position of `root` in the configuration.
    func read<Root>(
        _ settings: [Setting<Root>], below group: [String] = [], into root: inout Root
    ) throws(SettingsError) {
        for setting in settings {
            let path = SettingsPath(group + setting.key.split(separator: ".").map(String.init))
            guard let written = value(of: path, isList: setting.isList) else { continue }
            do { try setting.parse(written, &root) } catch { throw SettingsError(path.dotted, error.message) }
        }
        if let (setting, fault) = settings.firstFault(of: root) {
            throw SettingsError((group + [setting.key]).joined(separator: "."), fault.message)
        }
    }
}
