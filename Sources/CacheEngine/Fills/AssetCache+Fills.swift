package import CacheCore

/// Which of the fills under way are listed; nil leaves a field open.
package struct FillQuery: Sendable {
    package var origin: String?
    package var assetID: AssetID?
    package var stage: TransferStage?
    package var limit: Int
    package var cursor: String?

    package init(
        origin: String? = nil, assetID: AssetID? = nil, stage: TransferStage? = nil, limit: Int = 100,
        cursor: String? = nil
    ) {
        self.origin = origin
        self.assetID = assetID
        self.stage = stage
        self.limit = limit
        self.cursor = cursor
    }
}

extension AssetCache {
    /// The fills under way, in the order they began; a malformed cursor is `.invalidField("cursor")`.
    package func fills(
        _ query: FillQuery
    ) throws(CacheError) -> (items: [FillStatus], nextCursor: String?) {
        var last: UInt64 = 0
        if let cursor = query.cursor {
            guard let number = UInt64(cursor) else {
                throw CacheError(.invalidField("cursor"), "The cursor is not one that this list has given out.")
            }
            last = number
        }
        var items: [FillStatus] = []
        for (number, fill) in context.fillBook.fills(after: last) {
            let (id, origin) = (fill.asset.id, fill.asset.target.originName)
            guard query.assetID.map({ $0 == id }) ?? true, query.origin.map({ $0 == origin }) ?? true else { continue }
            let status = FillStatus(number: number, fill)
            guard query.stage.map({ $0 == status.stage }) ?? true else { continue }
            guard items.count < query.limit else { return (items, items.last.map { String($0.number) }) }
            items.append(status)
        }
        return (items, nil)
    }

    /// One fill under way; throws `.notFound` where it is over, or never was.
    package func fill(_ id: String) throws(CacheError) -> FillStatus {
        let (number, fill) = try underWay(id)
        return FillStatus(number: number, fill)
    }

    /// Stops a fill: what arrived stays, whoever waits for its bytes is told, and it is not begun again for those who are
    /// there now.
    package func cancelFill(_ id: String) throws(CacheError) {
        let (_, fill) = try underWay(id)
        fill.asset.cancel(fill: fill.fill)
    }

    private func underWay(_ id: String) throws(CacheError) -> (number: UInt64, fill: FillTransfer) {
        guard let number = UInt64(id), let fill = context.fillBook[number] else { throw Self.unknownFill(id) }
        return (number, fill)
    }

    private static func unknownFill(_ id: String) -> CacheError {
        CacheError(.notFound, "There is no fill \(id) under way.")
    }
}
