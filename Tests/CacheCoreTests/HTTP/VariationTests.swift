import CacheCore
import Testing

@Suite struct VariationTests {
    private static let choices: [(vary: [String], request: HeaderList, fields: HeaderList)] = [
        ([], ["Accept-Language": "en"], [:]),
        (["Accept-Language"], [:], [:]),
        (["Accept-Language"], ["Accept-Language": "en"], ["accept-language": "en"]),
        (["ACCEPT-language"], ["accept-LANGUAGE": "en"], ["accept-language": "en"]),
        (["Accept-Language"], ["Accept-Language": " en ,de,, fr "], ["accept-language": "en, de, fr"]),
        (["Accept-Language"], ["Accept-Language": "en", "accept-language": "de"], ["accept-language": "en, de"]),
        (["Accept-Language"], ["Accept-Language": "EN"], ["accept-language": "EN"]),
        (["X-B, X-A"], ["X-A": "1", "X-B": "2"], ["x-a": "1", "x-b": "2"]),
        (["X-B", "X-A"], ["X-B": "2"], ["x-b": "2"]),
        (["X-A,, x-a"], ["X-A": "1"], ["x-a": "1"]),
        (["X-A"], ["X-B": "1"], [:]),
        (["Accept-Encoding, X-A"], ["Accept-Encoding": "gzip", "X-A": "1"], ["x-a": "1"]),
        (["Authorization, Cookie, Range, If-Range, Host"], ["Cookie": "a=b", "Authorization": "Basic YTpi"], [:]),
        (["Origin, Access-Control-Request-Method", "X-A"], ["Origin": "https://a.example", "X-A": "1"], ["x-a": "1"]),
        (["X-Ignored, X-A"], ["X-Ignored": "1", "X-A": "1"], ["x-a": "1"]),
    ]

    @Test("Selects the request fields named by Vary", arguments: choices)
    func choosesByTheFieldsThatVaryNames(vary: [String], request: HeaderList, fields: HeaderList) {
        let headers = HeaderList(vary.map { .init("Vary", $0) })

        #expect(Variation.fields(of: request, chosenBy: headers, ignoring: ["X-IGNORED"]) == fields)
    }

    @Test(
        "Recognizes Vary: *",
        arguments: [("*", true), ("Accept, *", true), ("Accept", false), ("x*", false), ("", false)])
    func knowsWhatVariesOnEverything(vary: String, isOnEverything: Bool) {
        #expect(Variation.isOnEverything(["Vary": vary]) == isOnEverything)
    }

    @Test("Checks every Vary field")
    func looksAtEveryVaryField() {
        #expect(Variation.isOnEverything(["Vary": "Accept", "vary": "*"]))
    }
}
