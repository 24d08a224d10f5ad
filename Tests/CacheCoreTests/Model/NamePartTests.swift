import CacheCore
import Testing

@Suite struct NamePartTests {
    @Test("A part is found without regard to case and escapes, in both texts")
    func partsAreFoundAsPeopleReadThem() {
        let key = "/o/media/Tr%C3%A4ume%202%2F50%25.mp4"
        for part in ["", "träume", "TRÄUME 2", "Tr%C3%A4ume", "2/50%", ".mp4", "/o/media", "%.MP4", key] {
            #expect(NamePart(part).isIn(key), "\(part)")
        }
        for part in ["traume", "2 50", "mp4 ", key + "x", "\u{0}"] { #expect(!NamePart(part).isIn(key), "\(part)") }
    }

    @Test("Texts that are not UTF-8 without their escapes are searched, too")
    func textsWithoutUTF8AreSearched() {
        #expect(NamePart("name").isIn("/o/a/%FFName%FE"))
        #expect(!NamePart("other").isIn("/o/a/%FFName%FE"))
        #expect(NamePart("").isIn(""))
        #expect(!NamePart("a").isIn(""))
    }
}
