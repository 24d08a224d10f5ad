package import CacheCore

/// Registry of all fills in progress, by number; the management API lists and cancels them.
///
/// A fill is added at its start and removed at its end. Its progress does not touch the registry.
package final class FillRegistry: Sendable {
    /// Both directions of the mapping, and the last number that was assigned.
    private struct State {
        /// The last number that was assigned.
        var last: UInt64 = 0
        var fills: [UInt64: FillTransfer] = [:]
        var numbers: [ObjectIdentifier: (number: UInt64, startedAt: Duration)] = [:]
    }

    private let events: EventLog
    private let uptime: @Sendable () -> Duration

    /// Guards the mapping of numbers to fills.
    private let state = OrderedMutex(.leaf, State())

    init(events: EventLog, uptime: @escaping @Sendable () -> Duration) {
        self.events = events
        self.uptime = uptime
    }

    /// The number of fills in progress.
    var count: Int { state.withLock { $0.fills.count } }

    /// Adds the fill under the next number.
    func enter(_ fill: FillTransfer) {
        let now = uptime()
        let number = state.withLock { state in
            state.last += 1
            state.fills[state.last] = fill
            state.numbers[ObjectIdentifier(fill)] = (state.last, now)
            return state.last
        }
        events.publish(.fillStarted(FillEvent(number, fill)))
    }

    /// Removes the fill, which has received `bytes`; its number is not used again.
    func leave(_ fill: FillTransfer, bytes: Int64, error: CacheError.Code?) {
        let entry = state.withLock { state in
            let entry = state.numbers.removeValue(forKey: ObjectIdentifier(fill))
            if let entry { state.fills[entry.number] = nil }
            return entry
        }
        guard let entry else { return }
        let end = FillEvent.End(error: error, bytes: bytes, duration: uptime() - entry.startedAt)
        events.publish(.fillEnded(FillEvent(entry.number, fill), end))
    }

    /// The fill of that number; nil if it has ended.
    subscript(number: UInt64) -> FillTransfer? { state.withLock { $0.fills[number] } }

    /// The fill's number; nil if it has ended.
    func number(of fill: FillTransfer) -> UInt64? { state.withLock { $0.numbers[ObjectIdentifier(fill)]?.number } }

    /// The fills with a number above `number`, in the order of their start.
    private func fills(after number: UInt64 = 0) -> [(number: UInt64, fill: FillTransfer)] {
        state.withLock { state in
            state.fills.filter { $0.key > number }.map { ($0.key, $0.value) }.sorted { $0.0 < $1.0 }
        }
    }
}

extension FillEvent {
    init(_ number: UInt64, _ fill: FillTransfer) {
        let target = fill.asset.target
        self.init(
            number: number, assetID: target.id, key: target.key, origin: target.originName,
            range: fill.fillRequest.range)
    }
}

/// Management API.
extension FillRegistry {
    /// Lists the fills in progress, in the order of their start. Throws `.invalidField("cursor")` for a malformed
    /// cursor.
    package func page(
        _ query: FillQuery
    ) throws(CacheError) -> (items: [FillStatus], nextCursor: String?) {
        var last: UInt64 = 0
        if let cursor = query.cursor {
            guard let number = UInt64(cursor) else {
                throw .invalid("cursor", "The cursor is invalid; use nextCursor of the last page.")
            }
            last = number
        }
        var items: [FillStatus] = []
        for (number, fill) in fills(after: last) {
            let (id, origin) = (fill.asset.id, fill.asset.target.originName)
            guard query.assetID.map({ $0 == id }) ?? true, query.origin.map({ $0 == origin }) ?? true else { continue }
            let status = FillStatus(number: number, fill)
            guard query.prefix.map({ status.key.hasPrefix($0) }) ?? true else { continue }
            guard query.stage.map({ $0 == status.progress.stage }) ?? true else { continue }
            guard items.count < query.limit else { return (items, items.last.map { String($0.number) }) }
            items.append(status)
        }
        return (items, nil)
    }

    /// Returns one fill in progress. Throws `.notFound` if it has ended or never existed.
    package func fill(_ id: String) throws(CacheError) -> FillStatus {
        let (number, fill) = try underWay(id)
        return FillStatus(number: number, fill)
    }

    /// Cancels a fill; stored bytes stay. Readers that wait for its bytes are notified, and it is not restarted for
    /// readers that are present. Throws `.notFound` if it has ended or never existed.
    package func cancel(_ id: String) throws(CacheError) {
        let (_, fill) = try underWay(id)
        fill.asset.cancel(fill: fill.fill)
    }

    private func underWay(_ id: String) throws(CacheError) -> (number: UInt64, fill: FillTransfer) {
        guard let number = UInt64(id), let fill = self[number] else { throw Self.unknownFill(id) }
        return (number, fill)
    }

    private static func unknownFill(_ id: String) -> CacheError {
        CacheError(.notFound, "There is no fill \(id) in progress.")
    }
}

/// The filters and the page of a list of fills; a nil filter matches all fills.
package struct FillQuery: Sendable {
    package var origin: String?
    /// The beginning of the assets' keys.
    package var prefix: String?
    package var assetID: AssetID?
    package var stage: TransferStage?
    /// The maximum number of items.
    package var limit: Int
    /// The `nextCursor` of the previous page; nil: the first page.
    package var cursor: String?

    package init(
        origin: String? = nil, prefix: String? = nil, assetID: AssetID? = nil, stage: TransferStage? = nil,
        limit: Int = 100, cursor: String? = nil
    ) {
        self.origin = origin
        self.prefix = prefix
        self.assetID = assetID
        self.stage = stage
        self.limit = limit
        self.cursor = cursor
    }
}
