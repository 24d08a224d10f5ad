import CacheCore
import Testing

@Suite struct ResponseVerdictTests {
    static let now = Timestamp(seconds: 1_795_248_000)
    static let old = "Sun, 06 Nov 1994 08:49:37 GMT"
    static let received = HTTPDate.format(now)
    static let known = Generation(
        number: 4, length: 1000, contentType: "video/mp4",
        validators: Validators(entityTag: EntityTag("\"v1\""), lastModified: old, lastModifiedIsStrong: true),
        acceptsRanges: true, headers: ["Cache-Control": "max-age=60", "Content-Disposition": "inline"], receivedAt: now)

    static func judge(
        _ status: Int, _ headers: HeaderList, _ window: UpstreamRequest.Window = .closed(0..<100),
        known: Generation? = nil, freshness: OriginSettings.Freshness = .respect
    ) -> ResponseVerdict {
        ResponseVerdict.judge(
            UpstreamHead(status: status, headers: headers),
            expecting: WindowExpectation(window: window, known: known, now: now, freshness: freshness, path: "a.mp4"))
    }

    // MARK: 206

    private static let windows: [(String, UpstreamRequest.Window, ByteRange?, Int64?)] = [
        ("bytes 0-99/1000", .closed(0..<100), 0..<100, 1000),
        ("bytes 0-99/*", .closed(0..<100), 0..<100, nil),
        ("bytes 0-49/50", .closed(0..<100), 0..<50, 50),
        ("bytes 0-49/1000", .closed(0..<100), 0..<50, 1000),
        ("bytes 0-49/*", .closed(0..<100), 0..<50, nil),
        ("bytes 0-100/1000", .closed(0..<100), nil, nil),
        ("bytes 1-99/1000", .closed(0..<100), nil, nil),
        ("bytes 500-999/1000", .closed(500..<Int64.max), 500..<1000, 1000),
        ("bytes 900-999/1000", .suffix(100), 900..<1000, 1000),
        ("bytes 0-49/50", .suffix(100), 0..<50, 50),
        ("bytes 900-998/1000", .suffix(100), 900..<999, 1000),
        ("bytes 901-999/1000", .suffix(100), nil, nil),
        ("bytes 900-999/*", .suffix(100), nil, nil),
        ("bytes 0-999/1000", .whole, nil, nil),
        ("bytes */1000", .closed(0..<100), nil, nil),
        ("bytes 0-99", .closed(0..<100), nil, nil),
        ("garbled", .closed(0..<100), nil, nil),
    ]

    @Test("A 206 is accepted only if it begins the requested window", arguments: windows)
    func takesAWindowOnlyWhereItIsWhatWasAsked(
        text: String, window: UpstreamRequest.Window, run: ByteRange?, length: Int64?
    ) {
        switch Self.judge(206, ["Content-Range": text, "ETag": "\"v1\""], window) {
        case .window(let found, let generation):
            #expect(found == run)
            #expect(generation.length == length)
            #expect(generation.number == 1)
            #expect(generation.acceptsRanges == true)
        case .refused(let error):
            #expect(run == nil)
            #expect(error.code == .upstreamUnusable(asRange: true))
        default: Issue.record("The verdict of a 206 is neither `.window` nor `.refused`.")
        }
    }

    private static let brokenWindows: [HeaderList] = [
        [:], ["Content-Range": "bytes 0-99/1000", "content-range": "bytes 0-98/1000"],
        ["Content-Range": "bytes 0-99/1000", "Content-Length": "99"],
        ["Content-Range": "bytes 0-99/1000", "Content-Length": "100, 99"],
        ["Content-Range": "bytes 0-99/1000", "Content-Length": "many"],
        ["Content-Range": "bytes 0-99/1000", "Content-Encoding": "gzip"],
        ["Content-Range": "bytes 0-99/1000", "Content-Type": "Multipart/ByteRanges; boundary=x"],
        ["Content-Type": "multipart/byteranges; boundary=x"],
    ]

    @Test("Refuses a window that contradicts itself", arguments: brokenWindows)
    func refusesAWindowThatContradictsItself(headers: HeaderList) {
        Self.expectRefusal(Self.judge(206, headers), .upstreamUnusable(asRange: true))
    }

    @Test("A window of the known generation keeps fields absent from the response")
    func aWindowOfTheKnownGenerationKeepsWhatItDoesNotSay() {
        let headers: HeaderList = [
            "Content-Range": "bytes 100-199/1000", "Content-Length": "100, 100", "Content-Encoding": "identity",
            "ETag": "\"v1\"", "Cache-Control": "max-age=10",
        ]

        guard case .window(let run, let generation) = Self.judge(206, headers, .closed(100..<200), known: Self.known)
        else {
            Issue.record("The verdict is not `.window` with the expected range.")
            return
        }
        #expect(run == 100..<200)
        #expect(generation.number == 4)
        #expect(generation.validators == Self.known.validators)
        #expect(generation.contentType == "video/mp4")
        #expect(generation.contentTypeFrom == .header)
        #expect(
            generation.headers == [
                "Content-Disposition": "inline", "Cache-Control": "max-age=10", "Date": Self.received,
            ])
        #expect(generation.freshUntil == Self.now + .seconds(10))
    }

    @Test("A checksum of a 206 is not stored, and that of the whole stays (RFC 9530 §3.1)")
    func aChecksumOfAPartIsNotThatOfTheWhole() throws {
        let checksums: HeaderList = [
            "x-amz-checksum-sha256": "part", "Content-MD5": "part", "Digest": "part", "Content-Digest": "part",
            "X-Goog-Hash": "part", "Repr-Digest": "whole",
        ]
        let part: HeaderList = ["Content-Range": "bytes 0-99/1000", "ETag": "\"v1\""]
        let answer = HeaderList(part.fields + checksums.fields)
        guard case .window(_, let first) = Self.judge(206, answer) else { throw Unexpected() }
        #expect(checksums.fields.compactMap { first.headers[$0.name] } == ["whole"])

        var known = Self.known
        known.headers.set("x-amz-checksum-sha256", "whole")
        guard case .window(_, let later) = Self.judge(206, answer, known: known) else { throw Unexpected() }
        #expect(later.headers["x-amz-checksum-sha256"] == "whole" && later.headers["Digest"] == nil)
        guard case .unchanged(let confirmed) = Self.judge(304, answer, known: known) else { throw Unexpected() }
        #expect(confirmed.headers["x-amz-checksum-sha256"] == "whole" && confirmed.headers["Digest"] == nil)
        guard case .whole(let whole) = Self.judge(200, checksums) else { throw Unexpected() }
        #expect(whole.headers["x-amz-checksum-sha256"] == "part" && whole.headers["Content-Digest"] == nil)
    }

    private struct Unexpected: Error {}

    @Test("A clamped window can rely on the known length")
    func aClampedWindowMayRelyOnTheKnownLength() {
        let headers: HeaderList = ["Content-Range": "bytes 950-999/*", "ETag": "\"v1\""]
        guard
            case .window(950..<1000, let generation) = Self.judge(206, headers, .closed(950..<1050), known: Self.known)
        else {
            Issue.record("The verdict is not `.window` with the expected range.")
            return
        }
        #expect(generation.length == 1000)
        Self.expectRefusal(
            Self.judge(
                206, ["Content-Range": "bytes 950-1049/*", "ETag": "\"v1\""], .closed(950..<1050), known: Self.known),
            .upstreamUnusable(asRange: true))
    }

    @Test(
        "A window of another or unproved representation opens the next generation",
        arguments: [
            ["Content-Range": "bytes 0-99/1000", "ETag": "\"v2\"", "Last-Modified": old] as HeaderList,
            ["Content-Range": "bytes 0-99/1001", "ETag": "\"v1\""], ["Content-Range": "bytes 0-99/1000"],
            ["Content-Range": "bytes 0-99/1000", "ETag": "W/\"v1\"", "Last-Modified": old],
        ])
    func aWindowOfAnotherOrUnprovedRepresentationOpensTheNextGeneration(headers: HeaderList) {
        guard case .changed(let generation, _) = Self.judge(206, headers, known: Self.known) else {
            Issue.record("The verdict is not `.changed`.")
            return
        }
        #expect(generation.number == 5)
        #expect(generation.acceptsRanges == true)
    }

    // MARK: 200

    @Test("A whole response describes the first generation")
    func anAnswerWithTheWholeDescribesTheFirstGeneration() {
        let headers: HeaderList = [
            "Content-Length": "5000", "Content-Type": "video/mp4", "ETag": "\"v1\"", "Last-Modified": Self.old,
            "Date": HTTPDate.format(Self.now), "Cache-Control": "max-age=60", "Set-Cookie": "a=b",
            "Connection": "X-Hop",
            "X-Hop": "1", "X-Kept": "2", "Server": "s",
        ]

        guard case .whole(let generation) = Self.judge(200, headers) else {
            Issue.record("The verdict is not `.whole`.")
            return
        }
        #expect(
            generation
                == Generation(
                    length: 5000, contentType: "video/mp4",
                    validators: Validators(
                        entityTag: EntityTag("\"v1\""), lastModified: Self.old, lastModifiedIsStrong: true),
                    acceptsRanges: false,
                    headers: [
                        "Date": Self.received, "Cache-Control": "max-age=60", "X-Kept": "2", "Server": "s",
                    ],
                    receivedAt: Self.now, freshUntil: Self.now + .seconds(60)))
    }

    private static let ranges: [(HeaderList, UpstreamRequest.Window, Bool?)] = [
        (["Content-Length": "50"], .closed(0..<100), nil), (["Content-Length": "100"], .closed(0..<100), nil),
        (["Content-Length": "101"], .closed(0..<100), false), (["Content-Length": "50"], .closed(1..<100), false),
        ([:], .closed(0..<100), false), (["Content-Length": "50"], .suffix(100), nil),
        (["Content-Length": "500"], .suffix(100), false), (["Content-Length": "500"], .whole, nil),
        (["Content-Length": "500", "Accept-Ranges": "Bytes"], .whole, true),
        (["Content-Length": "500", "accept-ranges": "none"], .whole, false),
        (["Content-Length": "500", "Accept-Ranges": "bytes"], .closed(0..<100), false),
        (["Content-Length": "50", "Accept-Ranges": "bytes"], .closed(0..<100), true),
    ]

    @Test("States whether the upstream ignored the range", arguments: ranges)
    func tellsWhetherTheUpstreamIgnoredTheRange(headers: HeaderList, window: UpstreamRequest.Window, accepts: Bool?) {
        guard case .whole(let generation) = Self.judge(200, headers, window) else {
            Issue.record("The verdict is not `.whole`.")
            return
        }
        #expect(generation.acceptsRanges == accepts)
        #expect(generation.contentType == "video/mp4")
        #expect(generation.contentTypeFrom == .extension)
    }

    @Test("A whole response after a failed If-Range is the next generation")
    func aWholeAnswerAfterAFailedIfRangeIsTheNextGeneration() {
        guard
            case .changed(let generation, _) = Self.judge(
                200, ["Content-Length": "900", "ETag": "\"v2\""], .closed(100..<200), known: Self.known)
        else {
            Issue.record("The verdict is not `.changed`.")
            return
        }
        #expect(generation.number == 5)
        #expect(generation.length == 900)
        #expect(generation.acceptsRanges == nil)
        #expect(generation.headers == ["Date": Self.received])
    }

    @Test("A whole response with the same validator keeps the generation")
    func aWholeAnswerWithTheSameValidatorKeepsTheGeneration() {
        guard case .whole(let generation) = Self.judge(200, ["ETag": "\"v1\""], .closed(100..<200), known: Self.known)
        else {
            Issue.record("The verdict is not `.whole`.")
            return
        }
        #expect(generation.number == 4)
        #expect(generation.length == 1000)
        #expect(generation.acceptsRanges == false)
    }

    @Test("Refuses an invalid Content-Length", arguments: ["1, 2", "-1", "abc", "", "99999999999999999999"])
    func refusesALengthThatIsNone(length: String) {
        Self.expectRefusal(Self.judge(200, ["Content-Length": length]), .upstreamProtocol)
    }

    @Test("Content-Length beside Transfer-Encoding is ignored")
    func aLengthBesideATransferEncodingCountsForNothing() {
        let headers: HeaderList = ["Content-Length": "1, 2", "Transfer-Encoding": "chunked"]
        guard case .whole(let generation) = Self.judge(200, headers, .whole) else {
            Issue.record("The verdict is not `.whole`.")
            return
        }
        #expect(generation.length == nil)
        #expect(generation.headers == ["Date": Self.received])
    }

    // MARK: Other statuses

    @Test("A confirmation renews freshness and fields")
    func aConfirmationRenewsFreshnessAndFields() {
        let headers: HeaderList = ["ETag": "\"v1\"", "Cache-Control": "max-age=5", "X-New": "1", "Content-Length": "7"]

        guard case .unchanged(let generation) = Self.judge(304, headers, .whole, known: Self.known) else {
            Issue.record("The verdict is not `.unchanged`.")
            return
        }
        var expected = Self.known
        expected.headers = [
            "Content-Disposition": "inline", "Cache-Control": "max-age=5", "X-New": "1", "Date": Self.received,
        ]
        expected.freshUntil = Self.now + .seconds(5)
        #expect(generation == expected)
    }

    @Test("A confirmation without fields restarts the stored lifetime")
    func aConfirmationWithoutFieldsCountsTheStoredOnesAnew() {
        guard case .unchanged(let generation) = Self.judge(304, [:], .whole, known: Self.known) else {
            Issue.record("The verdict is not `.unchanged`.")
            return
        }
        #expect(generation.freshUntil == Self.now + .seconds(60))
        #expect(generation.headers.fields == Self.known.headers.fields + [.init("Date", Self.received)])
    }

    @Test("Refuses a 304 without a known generation")
    func refusesAConfirmationOfNothing() {
        Self.expectRefusal(Self.judge(304, [:]), .upstreamUnusable())
    }

    @Test("Keeps the status of a refusal", arguments: [400, 401, 403, 404, 410, 429, 500, 503, 599])
    func keepsTheStatusOfARefusal(status: Int) {
        Self.expectRefusal(Self.judge(status, [:]), .upstreamRefused(status: status))
    }

    @Test("Refuses a status that is not final", arguments: [0, 100, 199])
    func refusesAStatusThatIsNotFinal(status: Int) {
        Self.expectRefusal(Self.judge(status, ["Content-Length": "100"]), .upstreamUnusable())
    }

    @Test("Reads the length from a 416")
    func readsTheLengthOfAnUnsatisfiedRange() {
        for (headers, expected) in [(["Content-Range": "bytes */70"] as HeaderList, 70 as Int64?), ([:], nil)] {
            guard case .unsatisfiable(let length) = Self.judge(416, headers, .closed(100..<200)) else {
                Issue.record("The verdict is not `.unsatisfiable`.")
                return
            }
            #expect(length == expected)
        }
        Self.expectRefusal(Self.judge(416, [:], .whole), .upstreamRefused(status: 416))
    }

    @Test("An empty asset takes no field from its 416 response")
    func anEmptyAssetTakesNothingFromTheErrorThatShowedIt() {
        let head = UpstreamHead(
            status: 416,
            headers: ["Content-Range": "bytes */0", "Content-Type": "text/html", "ETag": "\"e\"", "X": "1"])
        let expectation = WindowExpectation(
            window: .closed(0..<10), known: Self.known, now: Self.now, freshness: .respect, path: "a.mp3")

        let generation = ResponseVerdict.emptyAsset(head, expecting: expectation)

        #expect(generation.length == 0)
        #expect(generation.number == 5)
        #expect(generation.contentType == "audio/mpeg")
        #expect(generation.validators.entityTag == EntityTag("\"e\""))
        #expect(generation.headers == [:])
    }

    static func expectRefusal(
        _ judgement: ResponseVerdict, _ code: CacheError.Code, sourceLocation: SourceLocation = #_sourceLocation
    ) {
        guard case .refused(let error) = judgement else {
            Issue.record("The response was not refused.", sourceLocation: sourceLocation)
            return
        }
        #expect(error.code == code, sourceLocation: sourceLocation)
    }
}
