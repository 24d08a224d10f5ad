import CacheCore

/// A reference resolved: which asset it is, and where its bytes come from at present.
struct AssetTarget: Sendable {
    let id: AssetID
    let key: String
    let originName: String
    let settings: OriginSettings
    /// In full, signature and all; for the upstream only.
    let url: String
    /// The path, for the type that its extension tells.
    let path: String
}
