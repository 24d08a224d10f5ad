import CacheCore
import Testing

@Suite struct StandingInTests {
    static let now = Timestamp(seconds: 1_780_000_000)
    static let generation = Generation(
        length: 1000, contentType: "video/mp4",
        validators: Validators(entityTag: EntityTag("\"a\""), lastModified: "Wed, 01 Jan 2025 00:00:00 GMT"),
        headers: ["Cache-Control": "max-age=60", "Vary": "Accept", "Content-Disposition": "inline"], receivedAt: now)

    static func plan(_ request: ContentRequest) -> ContentPlan? {
        ContentPlan.make(request, generation: generation, now: now, boundary: "B").standingIn
    }

    @Test("Of the fields only type and length are kept", arguments: [false, true])
    func ofTheFieldsOnlyTypeAndLengthAreLeft(_ isHead: Bool) throws {
        let plan = try #require(Self.plan(ContentRequest(isHead: isHead)))

        #expect(
            plan.headers == ["Cache-Control": "no-store", "Content-Type": "video/mp4", "Content-Length": "1000"])
        #expect(plan.status == 200 && plan.contentLength == 1000)
        #expect(plan.neededRanges == (isHead ? [] : [0..<1000]))
    }

    @Test(
        "A fallback answers only requests for the whole",
        arguments: [
            ["Range": "bytes=0-9"] as HeaderList, ["Range": "bytes=5000-"], ["If-None-Match": "\"a\""],
            ["If-Match": "\"b\""],
        ])
    func onlyTheWholeStandsIn(_ headers: HeaderList) {
        #expect(Self.plan(ContentRequest(headers: headers)) == nil)
    }

    @Test("An upstream failure permits a fallback")
    func whatTheUpstreamDidDeservesAFallback() {
        let codes: [CacheError.Code] = [
            .upstreamUnreachable(), .upstreamProtocol, .upstreamRefused(status: 401), .upstreamRefused(status: 404),
            .upstreamRefused(status: 429, retryAfter: .seconds(9)), .upstreamRefused(status: 503),
            .upstreamTimedOut(.connect), .upstreamTimedOut(.firstByte), .upstreamTimedOut(.idle),
            .upstreamTimedOut(.total), .upstreamTimedOut(.read), .assetChanged,
        ]
        for code in codes { #expect(code.deservesFallback, "\(code)") }
    }

    @Test("Other errors permit no fallback")
    func whatAnybodyElseDidDoesNot() {
        let codes: [CacheError.Code] = [
            .malformedRequest, .unauthorized, .forbidden, .upstreamForbidden, .notFound,
            .methodNotAllowed(allow: "GET"), .requestTimedOut, .conflict, .preconditionFailed, .payloadTooLarge,
            .uriTooLong, .headersTooLarge,
            .unsupportedMediaType, .rangeNotSatisfiable(length: 5), .invalidField("x"), .rateLimited, .internal,
            .overloaded, .shuttingDown, .storageCorrupt, .storageFull, .notCached, .loop, .cancelled,
        ]
        for code in codes { #expect(!code.deservesFallback, "\(code)") }
    }
}
