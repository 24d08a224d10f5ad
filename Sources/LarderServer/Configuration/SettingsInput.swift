/// The inputs of the settings: flags, environment and file. Each reading uses the same flags and environment, and the
/// present content of the files.
struct SettingsInput: Sendable {
    /// Dotted names and texts.
    var flags: [(name: String, text: String)] = []
    var environment: [String: String] = [:]
    /// The path of the configuration file; nil: there is none.
    var file: String?
    /// The sockets that take the place of `listen.address`; nil: there are none.
    var inherited: InheritedSockets?

    /// Reads and validates all settings. Blocks its thread. Throws the first invalid setting.
    func read() throws(SettingsError) -> ReadSettings {
        let stamps = WatchedFile.stamps(of: [file].compactMap(\.self))
        var read = try read(content: try content())
        read.stamps = WatchedFile.stamps(of: files(with: read.settings))
        // It is older than the content: a change during the reading will be noticed.
        if let file { read.stamps[file] = stamps[file] }
        return read
    }

    /// The parsed configuration file; nil: there is none. Blocks its thread.
    func content() throws(SettingsError) -> ConfigurationFile? {
        if let file { try ConfigurationFile(path: file) } else { nil }
    }

    /// Validates all settings with this content of the configuration file, and reads the files with tokens. Blocks its
    /// thread.
    func read(content: ConfigurationFile?) throws(SettingsError) -> ReadSettings {
        let layers = try SettingsLayers(flags: flags, environment: environment, file: content)
        return ReadSettings(try LarderSettings(layers, inherited: inherited), layers, content)
    }

    /// The files that settings were read from; a change of one of them causes a reload.
    func files(with settings: LarderSettings) -> [String] {
        [file].compactMap(\.self) + tokenFiles(of: settings)
    }

    /// The files with tokens, and those with secrets of webhooks.
    func tokenFiles(of settings: LarderSettings) -> [String] {
        [settings.access.tokenFile, settings.access.readTokenFile].compactMap(\.self)
            + settings.webhooks.compactMap(\.secretFile)
    }
}

/// Settings with the places that their values come from.
struct ReadSettings: Sendable {
    /// The place of the values that are not defaults, by path.
    private let sources: [SettingsPath: SettingSource]
    let settings: LarderSettings
    /// The configuration file; nil: there is none.
    let content: ConfigurationFile?
    /// The stamps of the files that were read.
    var stamps: WatchedFile.Stamps = [:]

    init(_ settings: LarderSettings, _ layers: SettingsLayers, _ content: ConfigurationFile? = nil) {
        self.settings = settings
        self.content = content
        let paths = settings.written.map { ($0.path, layers.source(of: $0.path, isList: $0.isList)) }
        sources = Dictionary(paths.filter { $0.1 != .default }) { first, _ in first }
    }

    /// Whether the file sets anything.
    var isFileUsed: Bool { sources.values.contains(.file) }

    /// The place of the setting's value.
    func source(of path: SettingsPath) -> SettingSource { sources[path] ?? .default }
}
