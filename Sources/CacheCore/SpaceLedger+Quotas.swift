extension SpaceLedger {
    /// Puts origins' quotas in force, by name; answers whether what they have must be counted now.
    package mutating func adopt(_ quotas: [String: OriginSettings.Quota]) -> Bool { shares.adopt(quotas) }

    /// Whether some origin is left something whatever others need.
    package var guarantees: Bool { shares.guarantees }

    /// Origins that have more than their quota, by their shares, and how much.
    package var overdrafts: [(share: Int, bytes: Int64)] { shares.overdrafts }
}
