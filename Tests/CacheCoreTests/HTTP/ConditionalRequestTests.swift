import CacheCore
import Testing

@Suite struct ConditionalRequestTests {
    private static let now = Timestamp(seconds: 1_795_248_000)
    private static let modified = "Sun, 06 Nov 1994 08:49:37 GMT"
    private static let before = "Sun, 06 Nov 1994 08:49:36 GMT"
    private static let after = "Sun, 06 Nov 1994 08:49:38 GMT"
    private static let strong = Validators(
        entityTag: EntityTag("\"a,b\""), lastModified: modified, lastModifiedIsStrong: true)
    private static let weak = Validators(entityTag: EntityTag("W/\"a\""), lastModified: modified)
    private static let dated = Validators(lastModified: modified, lastModifiedIsStrong: true)

    private static let cases: [(HeaderList, Validators, ConditionalRequest)] = [
        ([:], strong, .proceed),
        (["If-Match": "\"a,b\""], strong, .proceed),
        (["If-Match": "\"x\", \"a,b\""], strong, .proceed),
        (["If-Match": "\"x\"", "if-match": "\"a,b\""], strong, .proceed),
        (["If-Match": "*"], Validators(), .proceed),
        (["If-Match": "\"x\""], strong, .failed),
        (["If-Match": "W/\"a,b\""], strong, .failed),
        (["If-Match": "W/\"a\""], weak, .failed),
        (["If-Match": "\"a\""], dated, .failed),
        (["If-Match": "garbled"], strong, .failed),
        (["If-Unmodified-Since": modified], strong, .proceed),
        (["If-Unmodified-Since": after], strong, .proceed),
        (["If-Unmodified-Since": before], strong, .failed),
        (["If-Unmodified-Since": "garbled"], strong, .proceed),
        (["If-Unmodified-Since": before], Validators(), .proceed),
        (["If-Match": "\"a,b\"", "If-Unmodified-Since": before], strong, .proceed),
        (["If-None-Match": "\"a,b\""], strong, .notModified),
        (["If-None-Match": "W/\"a,b\""], strong, .notModified),
        (["If-None-Match": "W/\"x\",W/\"a\""], weak, .notModified),
        (["If-None-Match": "*"], Validators(), .notModified),
        (["If-None-Match": "\"x\""], strong, .proceed),
        (["If-None-Match": "\"a\", \"b\""], strong, .proceed),
        (["If-Modified-Since": modified], strong, .notModified),
        (["If-Modified-Since": after], strong, .notModified),
        (["If-Modified-Since": before], strong, .proceed),
        (["If-Modified-Since": "garbled"], strong, .proceed),
        (["If-Modified-Since": after, "if-modified-since": before], strong, .proceed),
        (["If-Modified-Since": after], Validators(), .proceed),
        (["If-None-Match": "\"x\"", "If-Modified-Since": after], strong, .proceed),
        (["If-Match": "\"x\"", "If-None-Match": "\"a,b\""], strong, .failed),
        (["If-Unmodified-Since": before, "If-None-Match": "\"a,b\""], strong, .failed),
        (["If-None-Match": "\"a,b\"", "Range": "bytes=0-1", "If-Range": "\"x\""], strong, .notModified),
        (["If-Range": "\"x\""], strong, .proceed),
        (["Range": "bytes=0-1", "If-Range": "\"a,b\""], strong, .proceed),
        (["Range": "bytes=0-1", "If-Range": "\"x\""], strong, .proceedWithoutRanges),
        (["Range": "bytes=0-1", "If-Range": "W/\"a,b\""], strong, .proceedWithoutRanges),
        (["Range": "bytes=0-1", "If-Range": "W/\"a\""], weak, .proceedWithoutRanges),
        (["Range": "bytes=0-1", "If-Range": modified], strong, .proceed),
        (["Range": "bytes=0-1", "If-Range": "Sunday, 06-Nov-94 08:49:37 GMT"], dated, .proceed),
        (["Range": "bytes=0-1", "If-Range": after], dated, .proceedWithoutRanges),
        (["Range": "bytes=0-1", "If-Range": modified], weak, .proceedWithoutRanges),
        (["Range": "bytes=0-1", "If-Range": "garbled"], strong, .proceedWithoutRanges),
        (["Range": "bytes=0-1", "If-Range": "\"a,b\"", "if-range": "\"a,b\""], strong, .proceedWithoutRanges),
    ]

    @Test("Evaluates preconditions in the order of RFC 9110", arguments: cases)
    func followsTheOrderOfTheSpecification(headers: HeaderList, validators: Validators, outcome: ConditionalRequest) {
        #expect(ConditionalRequest.evaluate(headers, validators: validators, now: Self.now) == outcome)
    }
}
