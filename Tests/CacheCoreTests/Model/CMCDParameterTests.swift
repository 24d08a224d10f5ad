import CacheCore
import Testing

@Suite struct CMCDParameterTests {
    @Test(
        "The parameter is removed in every spelling and at every place (CTA-5004 §2.2)",
        arguments: [
            ("CMCD=br%3D3200", nil), ("CMCD", nil), ("CMCD=", nil), ("CMCD=a&CMCD=b", nil),
            ("v=7&CMCD=br%3D1", "v=7"), ("CMCD=br%3D1&v=7", "v=7"), ("a=1&CMCD=x&b=2", "a=1&b=2"),
            ("%43MCD=x&v=7", "v=7"), ("v=7&%43%4d%43%44=x", "v=7"), ("a=1&&CMCD=x", "a=1&"), ("v=%7e&CMCD=x", "v=%7e"),
        ] as [(String, String?)])
    func removes(query: String, rest: String?) {
        #expect(CMCDParameter.removed(from: query) == rest)
        #expect(CMCDParameter.isPresent(in: query))
        let target = "/o/m/a.mp4?\(query)"
        #expect(CMCDParameter.removed(fromTarget: target) == "/o/m/a.mp4" + (rest.map { "?" + $0 } ?? ""))
        #expect(CMCDParameter.removed(fromTarget: target + "#t=1?CMCD=x").hasSuffix("#t=1?CMCD=x"))
    }

    @Test(
        "Other parameters stay byte for byte: the key has capitals",
        arguments: [
            "", "cmcd=x", "Cmcd=x", "CMCDX=1", "XCMCD=1", "v=CMCD", "v=1;CMCD=x", "%2543MCD=x", "CMCD%3D=x", "a=%zz&&b",
            "CMCD-Request=x", "CMC%64=x",
        ])
    func keeps(query: String) {
        #expect(CMCDParameter.removed(from: query) == query)
        #expect(!CMCDParameter.isPresent(in: query))
        #expect(CMCDParameter.removed(fromTarget: "/a?" + query) == "/a?" + query)
    }

    @Test("A path is no query")
    func path() {
        #expect(CMCDParameter.removed(from: nil) == nil)
        #expect(CMCDParameter.removed(fromTarget: "/o/m/CMCD=x&CMCD=y") == "/o/m/CMCD=x&CMCD=y")
    }
}
