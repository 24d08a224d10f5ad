import CacheCore

extension Setting<Quota> {
    /// The settings of one quota.
    static var all: [Setting] {
        [
            Setting(
                "min", \.minBytes, .size(atLeast: 0, example: "10GiB"),
                "guaranteed part of the store"),
            Setting(
                "max", orNone: \.maxBytes, .size(atLeast: 1, example: "100GiB"),
                "maximum part of the store, excess is evicted"),
        ]
    }
}

extension LarderSettings {
    /// The quotas of the tags that occur in `paths`.
    static func tagQuotas(
        namedBy paths: [SettingsPath], in lookup: SettingsLookup
    ) throws(SettingsError) -> [String: Quota] {
        let group = SettingsSchema.tagQuotas
        let tags = Set(
            paths.map(\.components).filter { $0.starts(with: group) && $0.count > group.count }.map { $0[group.count] })
        guard tags.count <= PolicySettings.maxTagQuotas else {
            throw SettingsError(
                group.joined(separator: "."), "names more than \(PolicySettings.maxTagQuotas) tags")
        }
        var quotas: [String: Quota] = [:]
        for tag in tags.sorted() {
            var quota = Quota()
            for setting in Setting<Quota>.all {
                try setting.read(lookup, SettingsPath(group + [tag, setting.key]), &quota)
            }
            try check(quota, below: (group + [tag]).joined(separator: ".") + ".")
            quotas[tag] = quota
        }
        return quotas
    }

    /// Throws if the maximum is below the minimum. `prefix`: the path before `min` and `max`, with its dot.
    static func check(_ quota: Quota, below prefix: String) throws(SettingsError) {
        if let most = quota.maxBytes, most < quota.minBytes {
            throw SettingsError("\(prefix)max", "is below \(prefix.split(separator: ".").last ?? "").min")
        }
    }
}
