import CacheCore
import Testing

/// The caching fields of responses by the permission that opened the content.
@Suite struct ResponseSharingTests {
    private static let now = Timestamp(seconds: 1_767_225_600)
    private static let date = HTTPDate.format(now - .seconds(10))

    /// The fields of a stored response with an age of 10 s, restricted. The end of the URL is 60 s away.
    private static func restricted(
        _ headers: HeaderList, _ sharing: ResponseSharing = .until(now + .seconds(60)), age: Duration = .seconds(10),
        timeToLive: Duration? = nil
    ) -> HeaderList {
        var headers = headers
        headers.set("Date", date)
        return sharing.restricted(headers, age: age, timeToLive: timeToLive, at: now)
    }

    @Test(
        "Responses to a reader's own credentials are private",
        arguments: [
            ("public, max-age=3600", "private, max-age=3600"), ("s-maxage=3600", "private"),
            ("max-age=60, must-revalidate", "private, max-age=60, must-revalidate"),
            ("PUBLIC , S-MaxAge=\"60\", proxy-revalidate, immutable", "private, immutable"),
            ("no-store", "private, no-store"),
            ("private=\"Set-Cookie\", no-cache=\"X-A, X-B\"", "private, no-cache=\"X-A, X-B\""),
            ("max-age=5, community=\"a, b\"", "private, max-age=5, community=\"a, b\""), ("", "private"),
        ])
    func aReadersResponseIsPrivate(stated: String, expected: String) {
        let fields = Self.restricted(["Cache-Control": stated, "ETag": "\"1\""], .readerOnly)
        #expect(fields.values("Cache-Control") == [expected])
        #expect(fields["ETag"] == "\"1\"" && fields["Date"] == Self.date)
    }

    @Test(
        "The lifetime of a signed URL's response ends with the URL",
        arguments: [
            ("public, max-age=3600", "public, must-revalidate, max-age=60"),
            ("max-age=30", "must-revalidate, max-age=20"), ("max-age=5", "must-revalidate, max-age=0"),
            ("s-maxage=3600", "must-revalidate, max-age=0, s-maxage=60"),
            ("s-maxage=30, max-age=3600", "must-revalidate, max-age=60, s-maxage=20"),
            ("max-age=3600, stale-while-revalidate=9, stale-if-error=9", "must-revalidate, max-age=60"),
            ("max-age=99999999999999999999, must-revalidate", "must-revalidate, max-age=60"),
            ("max-age=many", "must-revalidate, max-age=0"), ("no-store, max-age=60", "no-store, max-age=60"),
            ("no-store, must-understand, max-age=3600", "no-store, must-understand, must-revalidate, max-age=60"),
            ("private, max-age=3600", "private, must-revalidate, max-age=60"), ("", "must-revalidate, max-age=0"),
        ])
    func aSignedResponseEndsWithItsURL(stated: String, expected: String) {
        let fields = Self.restricted(["Cache-Control": stated])
        #expect(fields.values("Cache-Control") == [expected])
        #expect(fields["Date"] == nil)
    }

    @Test("Lifetimes by Expires and by heuristics end with the URL, too")
    func otherLifetimesEnd() {
        func lifetime(_ headers: HeaderList, _ timeToLive: Duration? = nil) -> String? {
            let fields = Self.restricted(headers, timeToLive: timeToLive)
            #expect(fields["Expires"] == nil)
            return fields["Cache-Control"]
        }
        let late = HTTPDate.format(Self.now + .seconds(500))
        #expect(lifetime(["Expires": late]) == "must-revalidate, max-age=60")
        #expect(lifetime(["Expires": HTTPDate.format(Self.now + .seconds(7))]) == "must-revalidate, max-age=7")
        #expect(lifetime(["Expires": "0"]) == "must-revalidate, max-age=0")
        #expect(lifetime(["Expires": late, "Cache-Control": "max-age=11"]) == "must-revalidate, max-age=1")
        #expect(lifetime([:], .seconds(500)) == "must-revalidate, max-age=60")
        #expect(lifetime([:], .seconds(8)) == "must-revalidate, max-age=8")
        #expect(lifetime([:], .seconds(-8)) == "must-revalidate, max-age=0")
        #expect(
            Self.restricted(["Expires": late], .readerOnly).fields.map(\.value) == [Self.date, "private, max-age=510"])
    }

    @Test("After its end a signed URL opens content for its reader only", arguments: [0, 999, -5000])
    func theGraceIsPrivate(milliseconds: Int) {
        let end = ResponseSharing.until(Self.now + .milliseconds(milliseconds))
        let fields = Self.restricted(["Cache-Control": "public, max-age=3600, s-maxage=3600"], end)
        #expect(fields["Cache-Control"] == "private, must-revalidate, max-age=0")
    }

    @Test(
        "Fields for other caches are removed, and their limits stay",
        arguments: [
            ("CDN-Cache-Control", "max-age=15", "s-maxage=5"), ("cdn-cache-control", "max-age=3600", "s-maxage=60"),
            ("Vendor-CDN-Cache-Control", "no-store", "private"), ("Surrogate-Control", "max-age=15", "s-maxage=5"),
            ("Surrogate-Control", "no-store", "private"), ("X-Accel-Expires", "15", "s-maxage=5"),
            ("X-Accel-Expires", "0", "s-maxage=0"), ("X-Accel-Expires", "off", "s-maxage=0"),
            ("Edge-Control", "no-store", "private"),
        ])
    func fieldsForOtherCachesAreRemoved(name: String, value: String, expected: String) throws {
        let headers: HeaderList = [name: value, "Cache-Control": "max-age=3600"]
        for sharing in [ResponseSharing.until(Self.now + .seconds(60)), .readerOnly] {
            let fields = Self.restricted(headers, sharing)
            #expect(fields[name] == nil)
            let members = try #require(fields["Cache-Control"]).split(separator: ", ")
            #expect(members.contains(sharing == .readerOnly ? "private" : expected[...]))
        }
        #expect(Self.restricted(headers, .asStated)[name] == value)
    }

    @Test("Content without a need of credentials keeps its fields")
    func publicContentIsUnchanged() {
        let headers: HeaderList = [
            "Cache-Control": "public, max-age=1", "Cache-Control": "s-maxage=2", "Expires": "0", "Date": Self.date,
        ]
        #expect(ResponseSharing.asStated.restricted(headers, age: .zero, timeToLive: nil, at: Self.now) == headers)
        #expect(!ResponseSharing.asStated.restartsAge && !ResponseSharing.readerOnly.restartsAge)
        #expect(ResponseSharing.until(Self.now).restartsAge)
    }

    @Test("A shared cache keeps a signed response until the end of its URL at the latest", arguments: [0, 3, 50, 7000])
    func anyAgeEndsInTime(age: Int) throws {
        let fields = Self.restricted(["Cache-Control": "max-age=7010"], age: .milliseconds(Int64(age) * 1000 + 999))
        let text = try #require(fields["Cache-Control"]?.split(separator: "max-age=").last)
        let lifetime = try #require(Int(text))
        #expect(lifetime == min(60, 7009 - age))
    }
}
