import Testing

@testable import CacheCore

@Suite struct StoreRulesTests {
    static let rules = OriginSettings.StoreRules(
        maxBytes: 100, never: ["video/mp2t", "Image/*"], always: ["audio/*", "image/png"])
    static let cases: [(type: String?, length: Int64?, isStorable: Bool, isKept: Bool)] = [
        ("video/mp4", 100, true, true), ("video/mp4", 101, true, false), ("video/mp4", nil, true, true),
        ("video/mp4", 1, false, false), ("Video/MP2T; x=1", 1, true, false), ("image/jpeg", 1, true, false),
        ("image/png", 1, true, false), ("audio/mpeg", 1, false, true), ("audio/mpeg", 101, false, false),
        (nil, nil, true, true), (nil, nil, false, false),
    ]

    @Test("Length precedes never, and never precedes always", arguments: cases)
    func lengthComesBeforeNeverAndNeverBeforeAlways(type: String?, length: Int64?, isStorable: Bool, isKept: Bool) {
        #expect(Self.rules.allow(type: type, length: length, isStorable: isStorable) == isKept)
    }

    @Test("A pattern is a media type or all subtypes of one")
    func aPatternIsATypeOrAllOfOneKind() {
        let right = ["video/mp4", "audio/*", "application/vnd.apple.mpegurl"]
        let wrong = ["", "video", "video/", "/mp4", "*/*", "*", "a/b/c", "video/mp4; q=1", "video /mp4"]

        #expect(right.allSatisfy(OriginSettings.StoreRules.isPattern))
        #expect(!wrong.contains(where: OriginSettings.StoreRules.isPattern))
    }
}
