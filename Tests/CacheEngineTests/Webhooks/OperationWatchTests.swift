import CacheCore
import Testing

@testable import CacheEngine

@Suite struct OperationWatchTests {
    private static let start = Timestamp(seconds: 1_780_000_000)

    @Test("A disk is full once it refuses a write or is short twice, and again after a minute with space")
    func aFullDiskIsReportedOnce() {
        var watch = DiskWatch()
        var reported: [Int] = []
        for second in 0..<200 {
            let isShort = [3, 10, 11, 12, 60, 61].contains(second)
            let refused: UInt64 = second < 150 ? 0 : 7
            if watch.check(isShort: isShort, refused: refused, at: .seconds(second)) { reported.append(second) }
        }
        #expect(reported == [11, 150])
    }

    @Test("A disk that stays full is reported once")
    func oneReportForEachTime() {
        var watch = DiskWatch()
        let count = (0..<1000).count { watch.check(isShort: true, refused: UInt64($0), at: .seconds($0)) }
        #expect(count == 1)
    }

    private static func finding(
        _ end: Duration?, error: String? = nil, isFromFile: Bool = false
    ) -> CredentialsWatch.Finding {
        CredentialsWatch.Finding(
            origin: "media", figures: .init(kind: "oauth2", expiresAt: end.map { start + $0 }, error: error),
            isFromFile: isFromFile)
    }

    @Test("Credentials that are renewed are not reported; those with a failing refresh are, once for each end")
    func failingRefreshesAreReported() {
        var watch = CredentialsWatch()
        #expect(watch.check([Self.finding(.seconds(200))], at: Self.start).isEmpty)
        #expect(watch.check([Self.finding(.seconds(400), error: "e")], at: Self.start).isEmpty)
        let reported = watch.check([Self.finding(.seconds(400), error: "e")], at: Self.start + .seconds(100))
        #expect(
            reported == [
                CredentialsEvent(
                    origin: "media", kind: "oauth2", expiresAt: Self.start + .seconds(400), error: "e")
            ])
        #expect(watch.check([Self.finding(.seconds(400), error: "e")], at: Self.start + .seconds(500)).isEmpty)
        #expect(watch.check([Self.finding(.seconds(900), error: "e")], at: Self.start + .seconds(600)).count == 1)
        #expect(watch.check([Self.finding(nil)], at: Self.start).isEmpty)
    }

    @Test("Credentials of a file are reported a tenth of their time before the end, at most a day")
    func filesAreReportedEarlier() {
        var watch = CredentialsWatch()
        let month = Duration.seconds(30 * 86_400)
        #expect(watch.check([Self.finding(month, isFromFile: true)], at: Self.start).isEmpty)
        let early = Self.start + month - .seconds(86_500)
        #expect(watch.check([Self.finding(month, isFromFile: true)], at: early).isEmpty)
        #expect(watch.check([Self.finding(month, isFromFile: true)], at: early + .seconds(100)).count == 1)
        var other = CredentialsWatch()
        #expect(other.check([Self.finding(.seconds(300), isFromFile: true)], at: Self.start).count == 1)
    }
}
