import CacheAPI
import CacheCore
@testable import CacheEngine
import Testing

@Suite struct CacheStatusTests {
    @Test(
        "States how a read was answered",
        arguments: [
            (ReadOutcome(requestClass: .hit, timeToLive: .seconds(60)), "Larder;hit;ttl=60"),
            (
                ReadOutcome(
                    requestClass: .miss, forwarding: .miss, isCollapsed: true, isStored: true, upstreamStatus: 206,
                    timeToLive: .seconds(3599)),
                "Larder;fwd=miss;fwd-status=206;ttl=3599;stored;collapsed"
            ),
            (
                ReadOutcome(requestClass: .partial, forwarding: .partial, isCollapsed: true),
                "Larder;fwd=partial;collapsed"
            ),
            (
                ReadOutcome(requestClass: .revalidated, forwarding: .stale, upstreamStatus: 304),
                "Larder;fwd=stale;fwd-status=304"
            ),
            (ReadOutcome(requestClass: .miss, forwarding: .varyMiss), "Larder;fwd=vary-miss"),
            (ReadOutcome(requestClass: .bypass, forwarding: .bypass), "Larder;fwd=bypass"),
            (
                ReadOutcome(requestClass: .stale, timeToLive: .seconds(-5), detail: "stale"),
                "Larder;hit;ttl=-5;detail=stale"
            ),
            (
                ReadOutcome(requestClass: .negative, timeToLive: .seconds(9), detail: "negative"),
                "Larder;hit;ttl=9;detail=negative"
            ),
            (
                ReadOutcome(requestClass: .error, forwarding: .miss, upstreamStatus: 503, detail: "upstreamRefused"),
                "Larder;fwd=miss;fwd-status=503;detail=upstreamRefused"
            ),
            (ReadOutcome(requestClass: .error, detail: "loop"), "Larder;detail=loop"),
            (ReadOutcome(requestClass: .error, detail: "two words"), #"Larder;detail="two words""#),
            (
                ReadOutcome(requestClass: .hit, timeToLive: .seconds(Int64.max)), "Larder;hit;ttl=999999999999999"
            ),
        ])
    func tellsHowAReadWasAnswered(outcome: ReadOutcome, field: String) {
        #expect(CacheStatus.field(outcome) == field)
    }

    @Test(
        "Is appended to a valid upstream value",
        arguments: [
            (["Edge; fwd=miss"], "Edge;fwd=miss, Larder;hit"),
            (
                [#""10.0.0.1"; hit"#, "Mid;fwd=stale;fwd-status=304"],
                #""10.0.0.1";hit, Mid;fwd=stale;fwd-status=304, Larder;hit"#
            ),
            (["Edge; fwd=", "Mid;hit"], "Larder;hit"), ([""], "Larder;hit"),
            (["HIT from proxy.example:3128"], "Larder;hit"),
        ])
    func comesAfterTheUpstreamsOwnWhereThatCanBeRead(upstream: [String], field: String) {
        #expect(CacheStatus.field(ReadOutcome(requestClass: .hit), after: upstream) == field)
    }
}
