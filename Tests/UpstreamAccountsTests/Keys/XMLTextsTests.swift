import Testing

@testable import UpstreamAccounts

@Suite struct XMLTextsTests {
    @Test("The texts of elements without elements are returned in order")
    func texts() {
        let xml = """
            <?xml version="1.0"?><!-- a --><r:a xmlns:r="x" b='c>d'> <b/><c> 1 &lt;&#50;&#x33; </c >
            <d>x<e>y</e>z</d><f><![CDATA[<&]]></f></r:a>
            """

        let leaves = XMLTexts.parse(Array(xml.utf8))

        #expect(
            leaves == [
                .init(path: ["a", "b"], text: ""), .init(path: ["a", "c"], text: "1 <23"),
                .init(path: ["a", "d", "e"], text: "y"), .init(path: ["a", "f"], text: "<&"),
            ])
    }

    @Test(
        "A malformed document is refused",
        arguments: [
            "", "text", "<a>", "<a></b>", "<a/><b/>", "<a></a>x", "<a b></a>", "<a b=c></a>", "<a b=\"<\"></a>",
            "<a>&x;</a>",
            "<a>&amp</a>", "<a>&#0;</a>", "<a>&#xD800;</a>", "<!DOCTYPE a><a/>", "<a><!ELEMENT b></a>", "<a><!--</a>",
            "<a><![CDATA[</a>", "<a", "<1/>", "</a>", "<a/ >", "<![CDATA[x]]><a/>",
            String(repeating: "<a>", count: 17) + String(repeating: "</a>", count: 17),
        ])
    func malformed(xml: String) {
        #expect(XMLTexts.parse(Array(xml.utf8)) == nil)
    }

    @Test("Bytes that are not UTF-8 are refused")
    func invalidUTF8() {
        #expect(XMLTexts.parse(Array("<a>".utf8) + [0xFF] + Array("</a>".utf8)) == nil)
    }
}
