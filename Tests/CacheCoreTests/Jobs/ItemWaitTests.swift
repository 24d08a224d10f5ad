import CacheCore
import Testing

@Suite struct ItemWaitTests {
    /// The cause and the time of a wait.
    struct Expected: Hashable {
        var cause: ItemWait.Cause
        var time: Duration?

        init(_ cause: ItemWait.Cause, _ time: Duration? = nil) { (self.cause, self.time) = (cause, time) }
    }

    typealias Row = (code: CacheError.Code, change: @Sendable (inout ItemWait.Conditions) -> Void, expected: Expected?)

    private static let open: @Sendable (inout ItemWait.Conditions) -> Void = { $0.circuitPause = .seconds(7) }
    private static let spent: @Sendable (inout ItemWait.Conditions) -> Void = { $0.isBudgetExhausted = true }
    private static let keyless: @Sendable (inout ItemWait.Conditions) -> Void = { $0.lacksCredentials = true }
    private static let full: @Sendable (inout ItemWait.Conditions) -> Void = { $0.isDiskFull = true }
    private static let single: @Sendable (inout ItemWait.Conditions) -> Void = { $0.permitsRetries = false }
    private static let busy = CacheError.Code.upstreamRefused(status: 403, .init(reason: .transient))
    private static let late = CacheError.Code.upstreamRefused(status: 429, retryAfter: .seconds(90))

    private static let rows: [Row] = [
        // No request was sent.
        (.upstreamUnreachable(retryAfter: .seconds(5)), { _ in }, Expected(.circuit, .seconds(5))),
        (.upstreamUnreachable(retryAfter: .seconds(5)), single, Expected(.circuit, .seconds(5))),
        // The last try of a run has opened the circuit.
        (.upstreamUnreachable(), open, Expected(.circuit, .seconds(7))),
        (.upstreamRefused(status: 503), open, Expected(.circuit, .seconds(7))),
        (.upstreamTimedOut(.firstByte), open, Expected(.circuit, .seconds(7))),
        // The upstream is busy.
        (late, { _ in }, Expected(.quota, .seconds(90))), (late, open, Expected(.quota, .seconds(90))),
        (late, single, nil), (busy, { _ in }, Expected(.quota)), (busy, single, nil),
        (.upstreamRefused(status: 503), { _ in }, Expected(.quota)),
        (.upstreamRefused(status: 425), { _ in }, Expected(.quota)),
        (.upstreamRefused(status: 529), { _ in }, Expected(.quota)),
        // The retry budget is exhausted.
        (.upstreamRefused(status: 500), spent, Expected(.quota)), (.upstreamUnreachable(), spent, Expected(.quota)),
        (.upstreamRefused(status: 404), spent, nil), (.upstreamRefused(status: 500), { _ in }, nil),
        (.upstreamUnreachable(), { _ in }, nil),
        // The origin has no credentials.
        (.upstreamUnreachable(), keyless, Expected(.credentials)),
        (.upstreamUnusable(), keyless, Expected(.credentials)),
        (.upstreamUnusable(), { _ in }, nil), (.upstreamRefused(status: 404), keyless, nil),
        // The disk is full.
        (.storageFull, full, Expected(.disk)), (.overloaded, full, Expected(.disk)), (.storageFull, { _ in }, nil),
        // Final errors.
        (.assetChanged, open, nil), (.conflict, full, nil), (.cancelled, open, nil),
    ]

    @Test("The cause of a wait follows from the error and the conditions", arguments: rows.indices)
    func causes(index: Int) {
        let row = Self.rows[index]
        var conditions = ItemWait.Conditions()
        row.change(&conditions)

        let wait = ItemWait.after(row.code, under: conditions)

        #expect(wait.map { Expected($0.cause, $0.time) } == row.expected, "\(row.code) \(conditions)")
    }
}
