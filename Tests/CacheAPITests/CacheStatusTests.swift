import CacheAPI
import CacheCore
import CacheEngine
import Testing

@Suite struct CacheStatusTests {
    @Test(arguments: [
        (ReadOutcome(requestClass: .hit, timeToLive: .seconds(60)), "Larder;hit;ttl=60"),
        (
            ReadOutcome(requestClass: .miss, forwarding: .miss, isStored: true, upstreamStatus: 206),
            "Larder;fwd=miss;fwd-status=206;stored"
        ),
        (ReadOutcome(requestClass: .partial, forwarding: .partial, isCollapsed: true), "Larder;fwd=partial;collapsed"),
        (
            ReadOutcome(requestClass: .revalidated, forwarding: .stale, upstreamStatus: 304),
            "Larder;fwd=stale;fwd-status=304"
        ),
        (ReadOutcome(requestClass: .bypass, forwarding: .bypass), "Larder;fwd=bypass"),
        (ReadOutcome(requestClass: .stale, timeToLive: .seconds(-5), detail: "stale"), "Larder;hit;ttl=-5;detail=stale"),
    ])
    func tellsHowAReadWasAnswered(outcome: ReadOutcome, field: String) {
        let parameters = Set(CacheStatus.field(outcome).replacing(" ", with: "").split(separator: ";"))
        #expect(parameters == Set(field.split(separator: ";")))
        #expect(CacheStatus.field(outcome).hasPrefix("Larder;"))
    }

    @Test func comesAfterTheUpstreamsOwn() {
        let field = CacheStatus.field(ReadOutcome(requestClass: .hit), after: "Edge; fwd=miss")
        #expect(field.hasPrefix("Edge; fwd=miss, Larder;"))
    }
}
