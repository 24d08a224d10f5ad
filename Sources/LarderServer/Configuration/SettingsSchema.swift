import CacheCore

/// Namespace of all settings: decides for each path whether it is a setting, a group or unknown.
enum SettingsSchema {
    /// The kind of a path.
    enum Place: Hashable {
        /// A prefix of settings.
        case group
        /// A setting.
        case value(isList: Bool)
    }

    /// Prefix of the quotas of tags; the next component is the tag.
    static let tagQuotas = ["policy", "tagQuotas"]

    /// Prefix of webhooks; the next component is the name.
    static let webhooks = "webhooks"

    /// The kind of a path from the root. Throws an error with the nearest known name if there is none.
    static func place(of components: [String]) throws(SettingsError) -> Place {
        if components.first == "origins" { return try originPlace(of: components) }
        if components.starts(with: tagQuotas) { return try quotaPlace(of: components) }
        if components.first == webhooks { return try webhookPlace(of: components) }
        let key = components.joined(separator: ".")
        if let setting = LarderSettings.settings.first(where: { $0.key == key }) {
            return .value(isList: setting.isList)
        }
        if isGroup(components) { return .group }
        throw unknown(components, among: LarderSettings.settings.map(\.key), below: [])
    }

    /// Whether the path is a prefix of settings. `keyQuery` and `circuitBreaker` are both a group and a value.
    static func isGroup(_ components: [String]) -> Bool {
        if components.first == "origins" {
            let inner = components.dropFirst(2).joined(separator: ".")
            return inner.isEmpty || inner == "headers" || isPrefix(inner, of: OriginSettings.settings.map(\.key))
        }
        return isPrefix(components.joined(separator: "."), of: LarderSettings.settings.map(\.key))
    }

    /// A sentence for each unknown `LARDER_…` variable, except for those that Kubernetes sets for a service of that
    /// name.
    ///
    /// They do not prevent the start, because other programs also set variables. ``refuseStrangers(in:)`` refuses those
    /// that would restrict the access.
    static func strangers(in variables: some Sequence<String>) -> [String] {
        unknown(variables).filter { !isProtected($0) }.map {
            "\($0) is not a known setting and is ignored\(suggestion(for: $0))"
        }
    }

    /// Throws for an unknown variable of TLS or of the access. Without the setting that it was meant to be, the service
    /// would serve more readers.
    static func refuseStrangers(in variables: some Sequence<String>) throws(SettingsError) {
        for variable in unknown(variables) where isProtected(variable) {
            throw SettingsError(variable, "is not a known setting\(suggestion(for: variable))")
        }
    }

    private static func isProtected(_ variable: String) -> Bool {
        variable.hasPrefix("LARDER_LISTEN_TLS_") || variable.hasPrefix("LARDER_ACCESS_")
    }

    /// The names of all variables that are read, except for those of origins and tags.
    static let variables = LarderSettings.settings.map { SettingsPath(dotted: $0.key).variable } + shortVariables

    /// The `LARDER_…` variables that are neither read nor set by Kubernetes, sorted.
    private static func unknown(_ names: some Sequence<String>) -> [String] {
        names.sorted().filter { variable in
            variable.hasPrefix("LARDER_") && !variable.hasPrefix("LARDER_ORIGINS_")
                && !variable.hasPrefix("LARDER_POLICY_TAG_QUOTAS_") && !variable.hasPrefix("LARDER_WEBHOOKS_")
                && !variables.contains(variable)
                && !isServiceLink(variable)
        }
    }

    private static func suggestion(for variable: String) -> String {
        EditDistance.nearest(to: variable, among: variables).map { " (did you mean \($0)?)" } ?? ""
    }

    /// Variables with short names: `LARDER_TOKEN` for `LARDER_ACCESS_TOKEN` and so on, and the configuration file's.
    static let shortVariables = [
        "LARDER_CONFIG", "LARDER_TOKEN", "LARDER_TOKEN_FILE", "LARDER_READ_TOKEN", "LARDER_READ_TOKEN_FILE",
        // Of the client commands.
        "LARDER_URL", "LARDER_CONTEXT",
    ]

    /// Whether Kubernetes sets the variable for a service named `larder…` (`…_SERVICE_HOST`, `…_PORT_8080_TCP`, …).
    static func isServiceLink(_ variable: String) -> Bool {
        let words = variable.split(separator: "_")
        if variable.hasSuffix("_SERVICE_HOST") || variable.hasSuffix("_PORT") { return true }
        return words.indices.contains { index in
            words[index] == "PORT" && index + 1 < words.count && (words[index + 1].allSatisfy(\.isNumber))
                || words[index] == "SERVICE" && index + 1 < words.count && words[index + 1] == "PORT"
        }
    }

    /// Paths below `origins`.
    private static func originPlace(of components: [String]) throws(SettingsError) -> Place {
        guard components.count > 1 else { return .group }
        guard Origin.isValid(name: components[1]) else {
            throw SettingsError(
                "origins.\(components[1])",
                "is not a valid origin name (1 to 64 of a–z, 0–9, '.', '_', '-', the first a letter or digit)")
        }
        guard components.count > 2 else { return .group }
        if components[2] == "headers" { return try headerPlace(of: components) }
        let key = components.dropFirst(2).joined(separator: ".")
        if let setting = OriginSettings.settings.first(where: { $0.key == key }) {
            return .value(isList: setting.isList)
        }
        if isGroup(components) { return .group }
        throw unknown(
            components, among: OriginSettings.settings.map(\.key) + ["headers"], below: Array(components.prefix(2)))
    }

    /// Paths below `tagQuotas`.
    private static func quotaPlace(of components: [String]) throws(SettingsError) -> Place {
        guard components.count > tagQuotas.count else { return .group }
        let owner = Array(components.prefix(tagQuotas.count + 1))
        guard AssetRecord.isTag(owner[tagQuotas.count]) else {
            throw SettingsError(owner.joined(separator: "."), "is not a valid tag (1 to 128 bytes)")
        }
        let key = components.dropFirst(owner.count).joined(separator: ".")
        let keys = Quota.settings.map(\.key)
        guard !key.isEmpty else { return .group }
        guard keys.contains(key) else { throw unknown(components, among: keys, below: owner) }
        return .value(isList: false)
    }

    /// Paths below `webhooks`.
    private static func webhookPlace(of components: [String]) throws(SettingsError) -> Place {
        guard components.count > 1 else { return .group }
        let owner = Array(components.prefix(2))
        guard WebhookEntry.isValid(name: owner[1]) else {
            throw SettingsError(
                owner.joined(separator: "."), "is not a valid name of a webhook (1 to 64 of a–z, 0–9, '_' and '-')")
        }
        let key = components.dropFirst(2).joined(separator: ".")
        let settings = WebhookEntry.settings
        if let setting = settings.first(where: { $0.key == key }) { return .value(isList: setting.isList) }
        guard key.isEmpty || isPrefix(key, of: settings.map(\.key)) else {
            throw unknown(components, among: settings.map(\.key), below: owner)
        }
        return .group
    }

    /// Paths below an origin's `headers`.
    private static func headerPlace(of components: [String]) throws(SettingsError) -> Place {
        guard components.count > 3 else { return .group }
        let name = components.dropFirst(3).joined(separator: ".")
        guard components.count == 4, FieldText.isToken(name) else {
            throw SettingsError(components.joined(separator: "."), "is not a valid header field name")
        }
        return .value(isList: false)
    }

    /// Whether a key begins with the components of `key`.
    private static func isPrefix(_ key: String, of keys: [String]) -> Bool {
        keys.contains { $0.hasPrefix(key + ".") }
    }

    /// The error for an unknown path.
    private static func unknown(_ components: [String], among keys: [String], below parents: [String]) -> SettingsError
    {
        let written = components.joined(separator: ".")
        let inner = components.dropFirst(parents.count).joined(separator: ".")
        guard let near = EditDistance.nearest(to: inner, among: keys) else {
            return SettingsError(written, "is not a known setting")
        }
        return SettingsError(
            written, "is not a known setting (did you mean \((parents + [near]).joined(separator: "."))?)")
    }
}
