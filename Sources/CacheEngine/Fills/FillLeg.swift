import CacheCore

/// The ear of one of a fill's transfers: passes on what it hears, with its number.
final class FillLeg: TransferDelegate {
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
