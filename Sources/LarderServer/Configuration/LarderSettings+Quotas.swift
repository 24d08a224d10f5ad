import CacheCore

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
            try lookup.read(Quota.settings, below: group + [tag], into: &quota)
            quotas[tag] = quota
        }
        return quotas
    }
}
