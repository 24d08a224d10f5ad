import CacheCore

extension RenditionChoice {
    /// The required properties.
    var filter: RenditionFilter { if case .matching(let filter) = self { filter } else { RenditionFilter() } }

    /// The renditions in the order of preference. Renditions of unknown bit rate are last, except for `first`.
    func ordered(_ renditions: [MediaPlaylist.Rendition]) -> [MediaPlaylist.Rendition] {
        let keys: [Int64] = renditions.map { rendition in
            let rate = rendition.bitsPerSecond ?? .max
            switch simplified {
            case .first, .all: return 0
            case .lowest, .matching: return rate
            // Rates up to the limit come first, in descending order. Rates are not negative.
            case .maxBitsPerSecond(let limit): return rate <= limit && rate != .max ? -rate - 1 : rate
            }
        }
        let order = renditions.indices.sorted { (keys[$0], $0) < (keys[$1], $1) }
        return order.map { renditions[$0] }
    }

    /// The choice by bit rate alone.
    private var simplified: RenditionChoice {
        guard case .matching(let filter) = self else { return self }
        if let limit = filter.maxBitsPerSecond { return .maxBitsPerSecond(limit) }
        return filter.maxHeight == nil ? .lowest : .maxBitsPerSecond(.max)
    }
}
