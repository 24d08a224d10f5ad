import TestChance
import Testing

@testable import ReaderAccess

struct PresentedSignatureTests {
    @Test(
        "Signature parameters are removed, the rest stays byte for byte",
        arguments: [
            ("/o/m/a?exp=1&kid=k&sig=s", "/o/m/a"), ("/o/m/a?x=1&exp=1&kid=k&sig=s", "/o/m/a?x=1"),
            ("/o/m/a?exp=1&x=%7e&kid=k&&sig=s&y", "/o/m/a?x=%7e&&y"), ("/o/m/a?&exp=1&kid=k&sig=s", "/o/m/a?"),
            ("/o/m/a?exp=1&kid=k&sig=s&prefix=/o/m/&prefixes=1", "/o/m/a?prefixes=1"),
            ("/o/m/a?exp=1&exp=2&kid=k&sig=s", "/o/m/a"), ("/o/m/a?b=1?exp=1&exp=2&kid=k&sig=s", "/o/m/a?b=1?exp=1"),
            ("/t/abc/o/m/a", "/o/m/a"), ("/t/abc/o/m/a?x=1", "/o/m/a?x=1"), ("/t//o/m/a", "/o/m/a"),
            ("/t/abc/o/m/a?exp=1&kid=k&sig=s&x=1", "/o/m/a?x=1"), ("/t/abc/o/m/t/def/o/x", "/o/m/t/def/o/x"),
            ("/o/m/a?URISigningPackage=a.b.c", "/o/m/a"), ("/o/m/a?x=1&URISigningPackage=a&y=2", "/o/m/a?x=1&y=2"),
            ("/o/m/a?URISigningPackage=a&exp=1&kid=k&sig=s", "/o/m/a"),
            ("/o/m/a;URISigningPackage=a.b.c", "/o/m/a"), ("/o/m/a;URISigningPackage=a.b.c?x=1", "/o/m/a?x=1"),
            ("/o/m;URISigningPackage=a.b.c/a", "/o/m/a"), ("/o/m/a;URISigningPackage=a;v=1", "/o/m/a;v=1"),
            ("/o/m/a;v=1;URISigningPackage=a", "/o/m/a;v=1"), ("/o/m/a?x=1;URISigningPackage=a", "/o/m/a?x=1"),
            ("/o/m/a%3BURISigningPackage=a", "/o/m/a"), ("/o/m/a%3bURISigningPackage%3Da/b", "/o/m/a/b"),
            ("/o/m/a;URISigningPackage=a?URISigningPackage=b", "/o/m/a"), ("/o/m/a,URISigningPackage=", "/o/m/a"),
        ])
    func stripping(_ target: String, _ clean: String) {
        let result = PresentedSignature.strip(target: target)
        #expect(result.cleanTarget == clean)
        #expect(result.presented != nil)
    }

    @Test(
        "Targets without a signature stay unchanged",
        arguments: [
            "/o/m/a", "/o/m/a?", "/o/m/a?exp=1&kid=k", "/o/m/a?exp=1&sig=s", "/o/m/a?kid=k&sig=s&prefix=/o/", "",
            "/o/m/a?exp&kid&sig", "/o/m/a?Exp=1&Kid=k&Sig=s", "/o/m/a?expx=1&kid=k&sig=s", "/o/m/a?%65xp=1&kid=k&sig=s",
            "/t/abc", "/t/abc/", "/t/abc/v1/stats", "/t/abc/o", "/t/abc/of/x", "/t/abc?x=/o/a", "/tt/abc/o/x", "?",
            "/?&",
            "/v1/stats?window=1", "/o/m/t/abc/o/x", "/o/m/a?uRISigningPackage=a", "/o/m/a?xURISigningPackage=a",
            "/o/m/aURISigningPackage=a", "/o/m/a;URISigningPackage", "/o/m/a;URISigningPackages=a",
            "/o/m/a%41URISigningPackage=a",
        ])
    func unsigned(_ target: String) {
        let result = PresentedSignature.strip(target: target)
        #expect(result.cleanTarget == target)
        #expect(result.presented == nil)
    }

    @Test("The values are those of the target; repeated parameters are ambiguous")
    func values() {
        func form(_ target: String) -> PresentedSignature.Form? {
            PresentedSignature.strip(target: target).presented?.form
        }
        #expect(
            form("/a?sig=s=&kid=k&exp=1&prefix=%2Fo")
                == .query(expiry: "1", keyID: "k", signature: "s=", prefix: "%2Fo"))
        #expect(form("/a?sig=&kid=&exp=") == .query(expiry: "", keyID: "", signature: "", prefix: nil))
        #expect(form("/t/abc/o/m") == .path(token: "abc"))
        #expect(form("/t/abc/o/m?sig=s&kid=k&exp=1") == .path(token: "abc"))
        #expect(form("/a?URISigningPackage=a.b") == .uriSigning(token: "a.b"))
        for name in ["sig", "kid", "exp", "prefix"] {
            #expect(form("/a?sig=s&kid=k&exp=1&prefix=/o/&\(name)=x") == .ambiguous)
        }
        #expect(form("/a?URISigningPackage=a&URISigningPackage=a") == .ambiguous)
        #expect(form("/a;URISigningPackage=a?URISigningPackage=a") == .ambiguous)
        #expect(form("/a;URISigningPackage=a.b_c-d?x") == .uriSigning(token: "a.b_c-d"))
    }

    @Test("A description shows no part of the signature")
    func description() {
        let signature = PresentedSignature.strip(target: "/a?sig=secret&kid=k&exp=1").presented
        #expect(signature?.description == "(signature)")
        #expect(signature.map { String(reflecting: $0) } == "(signature)")
    }

    @Test("Random targets never trap, keep no parameter of a recognised signature, and are stable")
    func random() {
        let (_, seed) = SeededRandom.announced()
        let seeds = ["/t/abc/o/m/a?exp=1&kid=k&sig=s&prefix=/o/&x=1", "/o/m/a?URISigningPackage=a.b.c&x"]
        for number in 0..<5000 as Range<UInt64> {
            let bytes = Mutation.input(number, seed: seed, from: seeds.map { Array($0.utf8) })
            let target = String(decoding: bytes, as: UTF8.self)
            let (clean, presented) = PresentedSignature.strip(target: target)
            if presented == nil { #expect(clean == target, "seed \(seed), input \(number)") }
            let fields =
                clean.utf8.split(separator: UInt8(ascii: "?"), maxSplits: 1).dropFirst().first?
                .split(separator: UInt8(ascii: "&")) ?? []
            if presented != nil, case .query? = presented?.form {
                #expect(!fields.contains { $0.starts(with: "sig=".utf8) }, "seed \(seed), input \(number)")
            }
        }
    }
}
