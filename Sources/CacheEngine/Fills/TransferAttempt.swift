import CacheCore

/// Delegate of one transfer of a fill; forwards the events to the fill with the number of the attempt.
final class TransferAttempt: TransferDelegate {
    private let fill: FillTransfer
    private let number: Int

    init(of fill: FillTransfer, number: Int) {
        self.fill = fill
        self.number = number
    }

    func started() throws(CacheError) { try fill.started(number) }

    func began(_ head: UpstreamHead) -> HeadVerdict { fill.began(head, of: number) }

    func progressed(to total: Int64) { fill.progressed(to: total, of: number) }

    func ended(_ end: TransferEnd) { fill.ended(end, of: number) }
}
