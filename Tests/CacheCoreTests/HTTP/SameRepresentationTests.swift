import CacheCore
import Testing

@Suite struct SameRepresentationTests {
    private static let now = Timestamp(seconds: 1_795_248_000)
    private static let date = "Sun, 06 Nov 1994 08:49:37 GMT"

    private static func generation(
        _ tag: String? = nil, date: String? = nil, strong: Bool = false, length: Int64? = 1000
    ) -> Generation {
        Generation(
            length: length,
            validators: Validators(
                entityTag: tag.flatMap { EntityTag($0) }, lastModified: date, lastModifiedIsStrong: strong),
            receivedAt: now)
    }

    /// New generation, known generation, and whether they can be joined under each trust setting.
    private static let pairs: [(Generation, Generation, strong: Bool, length: Bool, immutable: Bool)] = [
        (generation("\"a\""), generation("\"a\""), true, true, true),
        (generation("\"a\""), generation("\"b\""), false, false, true),
        (generation("\"a\"", length: nil), generation("\"a\""), true, true, true),
        (generation("\"a\"", length: 999), generation("\"a\""), false, false, false),
        (
            generation("\"a\"", date: date, strong: true), generation("\"b\"", date: date, strong: true), false, true,
            true
        ),
        (generation(date: date, strong: true), generation("\"a\"", date: date, strong: true), true, true, true),
        (generation(date: date, strong: true), generation(date: date, strong: true), true, true, true),
        (generation(date: date, strong: true), generation(date: date), false, true, true),
        (generation(date: date), generation(date: date), false, true, true),
        (generation(date: date, length: nil), generation(date: date), false, false, true),
        (generation("\"a\"", date: date), generation("\"b\"", date: date, length: 999), false, false, false),
        (generation("W/\"a\""), generation("W/\"a\""), false, false, true),
        (generation("W/\"a\""), generation("\"a\""), false, false, true),
        (
            generation("W/\"a\"", date: date, strong: true), generation("W/\"a\"", date: date, strong: true), true,
            true, true
        ),
        (generation("W/\"a\"", date: date), generation("W/\"a\""), false, false, true),
        (generation(), generation(), false, false, true),
        (generation("\"a\""), generation(), false, false, true),
    ]

    @Test("Joins only proven or trusted representations", arguments: pairs.indices)
    func joinsOnlyWhatIsProvedOrTrusted(index: Int) {
        let (new, known, strong, length, immutable) = Self.pairs[index]

        #expect(new.isSameRepresentation(as: known, trusting: .strong) == strong)
        #expect(new.isSameRepresentation(as: known, trusting: .lengthAndLastModified) == length)
        #expect(new.isSameRepresentation(as: known, trusting: .immutable) == immutable)
    }

    @Test(
        "A date is strong one minute after the change",
        arguments: [
            ("Sun, 06 Nov 1994 08:50:37 GMT", true), ("Sun, 06 Nov 1994 08:50:36 GMT", false), ("garbled", false),
            (nil, false),
        ] as [(String?, Bool)])
    func aDateIsStrongAMinuteAfterTheChange(response: String?, isStrong: Bool) {
        var headers: HeaderList = ["Last-Modified": Self.date, "ETag": "unquoted"]
        if let response { headers.append("Date", response) }

        let validators = Validators.of(headers, now: Self.now)

        #expect(validators.lastModified == Self.date)
        #expect(validators.lastModifiedIsStrong == isStrong)
        #expect(validators.entityTag == nil)
    }

    @Test("A malformed date is no validator")
    func aGarbledDateIsNoValidator() {
        #expect(Validators.of(["Last-Modified": "yesterday"], now: Self.now) == Validators())
    }
}
