import CacheCore
import Testing

@Suite struct ContentPlanTests {
    private static let now = Timestamp(seconds: 1_795_248_000)
    private static let asset = Generation(
        length: 1000, contentType: "video/mp4",
        validators: Validators(
            entityTag: EntityTag("\"v1\""), lastModified: "Sun, 06 Nov 1994 08:49:37 GMT", lastModifiedIsStrong: true),
        headers: ["Cache-Control": "max-age=60", "Content-Disposition": "inline", "Vary": "Origin"], receivedAt: now)

    private func plan(
        _ headers: HeaderList = [:], of generation: Generation = asset, isHead: Bool = false
    ) -> ContentPlan {
        ContentPlan.make(
            ContentRequest(isHead: isHead, headers: headers), generation: generation, now: Self.now, boundary: "B")
    }

    @Test("A whole response has every known field")
    func answersTheWholeWithEverythingThatIsKnown() {
        let plan = plan()

        #expect(plan.status == 200)
        #expect(
            plan.headers == [
                "ETag": "\"v1\"", "Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT", "Accept-Ranges": "bytes",
                "Cache-Control": "max-age=60", "Content-Disposition": "inline", "Vary": "Origin",
                "Content-Type": "video/mp4", "Content-Length": "1000",
            ])
        #expect(plan.body == [.bytes(0..<1000)])
        #expect(plan.contentLength == 1000)
        #expect(plan.neededRanges == [0..<1000])
    }

    @Test("One range gets a plain 206")
    func answersOneRangePlainly() {
        let plan = plan(["Range": "bytes=0-499"])

        #expect(plan.status == 206)
        #expect(plan.headers["Content-Range"] == "bytes 0-499/1000")
        #expect(plan.headers["Content-Type"] == "video/mp4")
        #expect(plan.headers["Content-Length"] == "500")
        #expect(plan.headers["ETag"] == "\"v1\"")
        #expect(plan.headers["Content-Disposition"] == "inline")
        #expect(plan.body == [.bytes(0..<500)])
        #expect(plan.contentLength == 500)
    }

    @Test("A part has no checksum of the whole, except Repr-Digest (RFC 9530 §3, RFC 1864)")
    func partsHaveNoChecksumOfTheWhole() {
        var asset = Self.asset
        let ambiguous = [
            "Content-MD5", "Digest", "x-amz-checksum-sha256", "X-Amz-Checksum-Crc64nvme", "x-amz-checksum-type",
            "x-goog-hash", "x-ms-content-crc64",
        ]
        for name in ambiguous + ["Repr-Digest"] { asset.headers.set(name, "x") }

        for range in ["bytes=0-0", "bytes=0-999", "bytes=500-599,0-0"] {
            let headers = plan(["Range": range], of: asset).headers
            #expect(ambiguous.allSatisfy { headers[$0] == nil } && headers["Repr-Digest"] == "x", "\(range)")
        }
        for isHead in [false, true] {
            let headers = plan(of: asset, isHead: isHead).headers
            #expect(ambiguous.allSatisfy { headers[$0] == "x" })
        }
    }

    @Test("A set reduced to one range gets a plain 206")
    func answersTheOneSurvivorOfSeveralPlainly() {
        #expect(plan(["Range": "bytes=0-9,5000-"]).body == [.bytes(0..<10)])
        #expect(plan(["Range": "bytes=0-9,10-19"]).headers["Content-Range"] == "bytes 0-19/1000")
    }

    @Test("Several ranges get a multipart body in the requested order")
    func answersSeveralRangesInPartsInTheOrderAskedFor() {
        let plan = plan(["Range": "bytes=500-599,0-0"])

        let body = plan.body.map { segment in
            switch segment {
            case .bytes(let run): "<\(run.lowerBound)-\(run.upperBound)>"
            case .text(let text): String(decoding: text, as: UTF8.self)
            }
        }
        #expect(plan.status == 206)
        #expect(plan.headers["Content-Type"] == "multipart/byteranges; boundary=B")
        #expect(plan.headers["Content-Range"] == nil)
        #expect(
            body.joined() == "--B\r\nContent-Type: video/mp4\r\nContent-Range: bytes 500-599/1000\r\n\r\n<500-600>"
                + "\r\n--B\r\nContent-Type: video/mp4\r\nContent-Range: bytes 0-0/1000\r\n\r\n<0-1>\r\n--B--\r\n")
        #expect(plan.contentLength == Self.byteCount(plan.body))
        #expect(plan.headers["Content-Length"] == plan.contentLength.map { String($0) })
        #expect(plan.neededRanges == [500..<600, 0..<1])
    }

    @Test("Parts of an asset without a type have no Content-Type")
    func partsOfAnAssetWithoutATypeHaveNone() {
        var generation = Self.asset
        generation.contentType = nil

        guard case .text(let opening)? = plan(["Range": "bytes=0-0,5-5"], of: generation).body.first else {
            Issue.record("The body does not start with the head of a part.")
            return
        }
        #expect(String(decoding: opening, as: UTF8.self) == "--B\r\nContent-Range: bytes 0-0/1000\r\n\r\n")
    }

    @Test("An unsatisfiable range gets the length")
    func saysTheLengthWhereNoRangeLiesInTheAsset() {
        let plan = plan(["Range": "bytes=1000-"])

        #expect(plan.status == 416)
        #expect(plan.headers == ["Accept-Ranges": "bytes", "Content-Range": "bytes */1000"])
        #expect(plan.body.isEmpty)
    }

    @Test(
        "An ignored range gets the whole asset", arguments: ["bytes=5-4", "items=0-1", "bytes=0-,0-", "bytes=x"])
    func answersTheWholeWhereTheRangeIsIgnored(range: String) {
        #expect(plan(["Range": range]) == plan())
    }

    @Test("Two Range fields are ignored")
    func takesTwoRangeFieldsForAGarbledOne() {
        #expect(plan(["Range": "bytes=0-1", "range": "bytes=5-6"]).status == 200)
    }

    @Test("HEAD has the fields of GET without ranges and without a body")
    func headSaysWhatGetWouldWithoutRangesOrBody() {
        let head = plan(["Range": "bytes=0-1"], isHead: true)

        #expect(head.status == 200)
        #expect(head.headers == plan().headers)
        #expect(head.body.isEmpty)
        #expect(head.contentLength == 1000)
        #expect(plan(["Range": "bytes=5000-"], isHead: true).status == 200)
    }

    @Test("304 contains only fields that caches need")
    func notModifiedKeepsOnlyWhatCachesNeed() {
        let plan = plan(["If-None-Match": "\"v1\"", "Range": "bytes=5000-"])

        #expect(plan.status == 304)
        #expect(
            plan.headers == [
                "ETag": "\"v1\"", "Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT", "Cache-Control": "max-age=60",
                "Vary": "Origin",
            ])
        #expect(plan.body.isEmpty)
        #expect(plan.contentLength == 0)
    }

    @Test("304 contains Date, Via and Cache-Status")
    func notModifiedSaysWhenAndWhichWayTheAssetCame() {
        let headers: HeaderList = [
            "Date": "Sun, 06 Nov 1994 08:49:37 GMT", "Via": "1.1 far", "Cache-Status": "far;hit", "X-Other": "1",
        ]
        var generation = Self.asset
        generation.headers = headers

        let plan = plan(["If-None-Match": "*"], of: generation)

        #expect(plan.headers.fields.dropFirst(2) == headers.fields.dropLast())
    }

    @Test("412 contains no content fields")
    func aFailedPreconditionSaysNothingOfTheContent() {
        let plan = plan(["If-Match": "\"v2\""])

        #expect(plan.status == 412)
        #expect(plan.headers == [:])
        #expect(plan.body.isEmpty)
    }

    @Test("If-Range decides between the range and the whole")
    func ifRangeDecidesBetweenTheRangeAndTheWhole() {
        #expect(plan(["Range": "bytes=0-1", "If-Range": "\"v1\""]).status == 206)
        #expect(plan(["Range": "bytes=0-1", "If-Range": "\"v2\""]) == plan())
        #expect(plan(["Range": "bytes=5000-", "If-Range": "\"v2\""]) == plan())
    }

    @Test(
        "An unknown length gives an open-ended body",
        arguments: ["bytes=0-1", "bytes=-5", "bytes=500-", "bytes=0-1,5-6"])
    func isOpenEndedWhileTheLengthIsUnknown(range: String) {
        var generation = Self.asset
        generation.length = nil

        let plan = plan(["Range": range], of: generation)

        #expect(plan.status == 200)
        #expect(plan.body == [.bytes(0..<Int64.max)])
        #expect(plan.contentLength == nil)
        #expect(plan.headers["Content-Length"] == nil)
        #expect(plan.headers["Accept-Ranges"] == nil)
    }

    @Test("An empty asset has an empty body")
    func anEmptyAssetHasAnEmptyBody() {
        var generation = Self.asset
        generation.length = 0

        #expect(plan(of: generation).status == 200)
        #expect(plan(of: generation).body.isEmpty)
        #expect(plan(of: generation).headers["Content-Length"] == "0")
        #expect(plan(["Range": "bytes=0-"], of: generation).headers["Content-Range"] == "bytes */0")
        #expect(plan(["Range": "bytes=-1"], of: generation).status == 200)
    }

    @Test("The whole is sent if the multipart length overflows")
    func answersTheWholeWhereTheMultipartBodyCannotBeCounted() {
        var generation = Self.asset
        generation.length = .max

        let plan = plan(["Range": "bytes=0-0,2-"], of: generation)

        #expect(plan.status == 200)
        #expect(plan.body == [.bytes(0..<Int64.max)])
    }

    @Test("Requests a boundary only for a multipart body")
    func asksForABoundaryOnlyWhereThereAreParts() {
        var asked = 0
        func boundary() -> String {
            asked += 1
            return "B"
        }
        func make(_ range: String) {
            let request = ContentRequest(headers: ["Range": range])
            _ = ContentPlan.make(request, generation: Self.asset, now: Self.now, boundary: boundary())
        }

        make("bytes=0-1")
        #expect(asked == 0)
        make("bytes=0-1,5-6")
        #expect(asked == 1)
    }

    @Test("Boundaries differ by asset, generation and token")
    func boundariesDifferByAssetGenerationAndToken() throws {
        let asset = try #require(AssetID("00112233445566778899aabbccddeeff"))
        let token = "ffeeddccbbaa99887766554433221100"
        let boundary = Multipart.boundary(asset: asset, generation: 7, token: token)

        #expect(boundary == "0011223344556677-7-" + token)
        #expect(Multipart.boundary(asset: asset, generation: .max, token: token + token).utf8.count <= 70)
        #expect(Multipart.boundary(asset: asset, generation: 8, token: token) != boundary)
    }

    private static func byteCount(_ body: [ContentPlan.Segment]) -> Int64 {
        body.reduce(0) { sum, segment in
            switch segment {
            case .bytes(let run): sum + run.length
            case .text(let text): sum + Int64(text.count)
            }
        }
    }
}
