import CacheCore
import Testing

/// The XML pull parser.
struct XMLReaderTests {
    /// The events of a document as text: `<a x=1>`, `>` for an end, and text in quotes.
    private func events(_ text: String, depth: Int = 10) throws -> [String] {
        var reader = XMLReader(Array(text.utf8), depth: depth)
        var events: [String] = []
        while true {
            switch try reader.next() {
            case .start(let element): events.append("<\(element.name) x=\(element.attribute("x") ?? "")")
            case .end: events.append(">")
            case .text(let text): events.append("'\(text)'")
            case .finished: return events
            }
        }
    }

    @Test("Elements, attributes, text, CDATA, comments and processing instructions")
    func document() throws {
        let text = """
            \u{FEFF}<?xml version="1.0"?><!-- <a> -- --><n:r x = 'a"b' y="&lt;&#65;&#x42;"><?p a>b?>\
            t&amp;<![CDATA[<&]]]>]]>\
            <e  x="1"/><f\n></f ></n:r> <!-- end -->

            """
        #expect(
            try events(text) == [
                "<r x=a\"b", "'t&'", "'<&]'", "']]>'", "<e x=1", ">", "<f x=", ">", ">",
            ])
    }

    @Test("References are decoded")
    func references() throws {
        let text = #"<r x="&lt;&gt;&amp;&apos;&quot;&#65;&#x1F600;&#x00041;&#10;"/>"#
        #expect(try events(text).first == "<r x=<>&'\"A😀A\n")
    }

    @Test(
        "Invalid references are malformed",
        arguments: [
            "&", "&;", "&nbsp;", "&#;", "&#x;", "&#0;", "&#xD800;", "&#x110000;", "&#-1;", "&#+1;", "&#x+1;", "&#1;",
            "&#xFFFE;", "&lt", "&lt x;", "&#00000000000000000065;", "&LT;",
        ])
    func invalidReferences(text: String) {
        #expect(throws: XMLError.self) { try events("<r>\(text)</r>") }
        #expect(throws: XMLError.self) { try events("<r x=\"\(text)\"/>") }
    }

    @Test(
        "Documents that are not well-formed are malformed",
        arguments: [
            "", " ", "<", "<r", "<r>", "<r/", "<r></s>", "<r></r", "</r>", "<r/><r/>", "<r/>x", "x<r/>", "<r x/>",
            "<r x=1/>",
            "<r x=\"1/>", "<r x=\"<\"/>", "<r x=\"1\"y=\"2\"/>", "<1/>", "<-a/>", "< r/>", "<r><![CDATA[x]></r>",
            "<r><!-- x ></r>", "<r><?x ></r>", "<![CDATA[x]]><r/>", "<r><!ELEMENT a></r>", "<r></ r>", "<!-->",
        ])
    func notWellFormed(text: String) {
        #expect(throws: XMLError.self) { try events(text) }
    }

    @Test("The depth and the number of attributes are limited")
    func limits() throws {
        let nested = { (count: Int) in
            String(repeating: "<a>", count: count) + String(repeating: "</a>", count: count)
        }
        #expect(try events(nested(10)).count == 20)
        #expect(throws: XMLError.self) { try events(nested(11)) }
        let attributes = (0..<257).map { " a\($0)=''" }.joined()
        #expect(throws: XMLError.self) { try events("<r\(attributes)/>") }
    }

    @Test("Invalid UTF-8 is malformed")
    func encoding() {
        var reader = XMLReader(Array("<r>".utf8) + [0xFF] + Array("</r>".utf8), depth: 10)
        #expect(throws: XMLError.self) {
            _ = try reader.next()
            _ = try reader.next()
        }
    }
}
