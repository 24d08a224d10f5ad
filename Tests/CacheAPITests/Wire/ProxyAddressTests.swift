import CacheCore
import CacheTestKit
import Testing

@testable import CacheAPI

/// Parsers of addresses, PROXY headers and fields of proxies.
@Suite struct ProxyAddressTests {
    /// The text of RFC 5952 for each spelling.
    @Test(
        "An address is written in its canonical form",
        arguments: [
            ("192.0.2.1", "192.0.2.1"), ("::ffff:192.0.2.1", "192.0.2.1"), ("2001:0DB8:0:0:0:0:0:1", "2001:db8::1"),
            ("::", "::"), ("::1", "::1"), ("1::", "1::"), ("2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"),
            ("2001:0:0:1:0:0:0:1", "2001:0:0:1::1"), ("64:ff9b::192.0.2.33", "64:ff9b::c000:221"),
        ])
    func addressesAreCanonical(text: String, canonical: String) {
        #expect(NetworkAddress(text)?.description == canonical)
    }

    @Test(
        "A text that is no address is rejected",
        arguments: [
            "", "1.2.3", "1.2.3.4.5", "1.2.3.256", "01.2.3.4", "1.2.3.-4", ":", ":::", "1::2::3", "1:2:3:4:5:6:7",
            "1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7::8", "12345::", "g::", "::1%eth0", "[::1]", "+1::", "::1.2.3",
        ])
    func malformedAddressesAreRejected(text: String) {
        #expect(NetworkAddress(text) == nil)
    }

    @Test("A network contains the addresses with its first bits, and limits count IPv6 addresses by /64")
    func networksContainTheirAddresses() throws {
        let net = try #require(NetworkRange("10.0.0.0/9"))
        let wide = try #require(NetworkRange("2001:db8::/33"))
        let address = { (text: String) throws in try #require(NetworkAddress(text)) }
        #expect(try net.contains(address("10.127.255.255")))
        #expect(try !net.contains(address("10.128.0.0")))
        #expect(try !net.contains(address("::a7f:1")))
        #expect(try net.contains(address("::ffff:10.1.1.1")))
        #expect(try wide.contains(address("2001:db8:7fff::1")))
        #expect(try !wide.contains(address("2001:db8:8000::1")))
        let everything = try #require(NetworkRange("::/0"))
        #expect(try everything.contains(address("1.2.3.4")))
        #expect(NetworkRange("::1")?.description == "::1")
        #expect(net.description == "10.0.0.0/9")
        for text in ["10.0.0.1/8", "10.0.0.0/33", "::/129", "10.0.0.0/", "10.0.0.0/+8", "10.0.0.0/08x", "host"] {
            #expect(NetworkRange(text) == nil, "\(text)")
        }
        #expect(try address("2001:db8:1:2:3::4").counted == address("2001:db8:1:2::"))
        #expect(try address("192.0.2.7").counted == address("192.0.2.7"))
    }

    /// Examples of the specification, section 2.1, and their ends.
    @Test("A PROXY header of version 1 is parsed")
    func versionOneIsParsed() {
        let parse = { (text: String) in ProxyHeader.parse(Array(text.utf8)) }
        let four = "PROXY TCP4 255.255.255.255 255.255.255.254 65535 65534\r\n"
        #expect(
            parse(four + "GET")
                == .complete(length: four.utf8.count, source: .address(NetworkAddress("255.255.255.255")!)))
        let six = "PROXY TCP6 ffff:f::ffff ffff:f::fffe 65535 0\r\n"
        #expect(parse(six) == .complete(length: six.utf8.count, source: .address(NetworkAddress("ffff:f::ffff")!)))
        #expect(parse("PROXY UNKNOWN\r\n") == .complete(length: 15, source: .unknown))
        let long = "PROXY UNKNOWN ffff:f...f:ffff ffff:f...f:ffff 65535 65535\r\n"
        #expect(parse(long) == .complete(length: long.utf8.count, source: .unknown))
        for count in 0..<four.utf8.count {
            #expect(ProxyHeader.parse(Array(four.utf8.prefix(count))) == .incomplete, "\(count)")
        }
        for text in [
            "GET / HTTP/1.1\r\n", "PROXY TCP4 1.2.3.4 1.2.3.4 1\r\n", "PROXY TCP4 ::1 ::1 1 2\r\n",
            "PROXY TCP6 1.2.3.4 ::1 1 2\r\n", "PROXY TCP4 1.2.3.4 1.2.3.4 1 65536\r\n",
            "PROXY TCP4 1.2.3.4 1.2.3.4 01 2\r\n",
            "PROXY  TCP4 1.2.3.4 1.2.3.4 1 2\r\n", "PROXY TCP4 1.2.3.4 1.2.3.4 1 2\n",
            "PROXY UDP4 1.2.3.4 1.2.3.4 1 2\r\n",
            "PROXY TCP4 " + String(repeating: "1", count: 120), "PROXY \r\n", "proxy TCP4 1.2.3.4 1.2.3.4 1 2\r\n",
        ] {
            guard case .malformed(let reason) = parse(text) else {
                Issue.record("\(text) is accepted")
                continue
            }
            #expect(reason.hasSuffix("."))
        }
    }

    private static let signature: [UInt8] = [
        0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A,
    ]

    @Test("A PROXY header of version 2 is parsed")
    func versionTwoIsParsed() {
        let four = Self.signature + [0x21, 0x11, 0, 12, 192, 0, 2, 1, 198, 51, 100, 2, 0xC0, 0, 0, 80]
        #expect(ProxyHeader.parse(four + [1]) == .complete(length: 28, source: .address(NetworkAddress("192.0.2.1")!)))
        // An addition (PP2_TYPE_NOOP) follows the addresses.
        let more = Self.signature + [0x21, 0x11, 0, 16, 192, 0, 2, 1, 198, 51, 100, 2, 0xC0, 0, 0, 80, 4, 0, 1, 0]
        #expect(ProxyHeader.parse(more) == .complete(length: 32, source: .address(NetworkAddress("192.0.2.1")!)))
        let source: [UInt8] = [0x20, 1, 0x0D, 0xB8] + [UInt8](repeating: 0, count: 11) + [7]
        let six = Self.signature + [0x21, 0x21, 0, 36] + source + source + [0, 1, 0, 2]
        #expect(ProxyHeader.parse(six) == .complete(length: 52, source: .address(NetworkAddress("2001:db8::7")!)))
        let local = Self.signature + [0x20, 0, 0, 0]
        #expect(ProxyHeader.parse(local) == .complete(length: 16, source: .proxy))
        let unix = Self.signature + [0x21, 0x31, 0, 216] + [UInt8](repeating: 47, count: 216)
        #expect(ProxyHeader.parse(unix) == .complete(length: 232, source: .unknown))
        for count in 0..<four.count { #expect(ProxyHeader.parse(Array(four.prefix(count))) == .incomplete) }
        for wrong: [UInt8] in [
            [0x11, 0x11, 0, 12], [0x22, 0x11, 0, 12], [0x21, 0x12, 0, 12], [0x21, 0x41, 0, 0], [0x21, 0x11, 0, 11],
            [0x21, 0x21, 0, 35], [0x21, 0x11, 0xFF, 0xFF],
        ] {
            let header = Self.signature + wrong + [UInt8](repeating: 0, count: 300)
            guard case .malformed = ProxyHeader.parse(header) else {
                Issue.record("\(wrong) is accepted")
                continue
            }
        }
    }

    @Test("Forwarded is parsed as in the examples of RFC 7239")
    func forwardedIsParsed() throws {
        let parse = { (text: String) throws in try ForwardedHop.forwarded([text]) }
        #expect(
            try parse("for=192.0.2.60;proto=http;by=203.0.113.43")
                == [ForwardedHop(address: NetworkAddress("192.0.2.60"), proto: "http")])
        #expect(
            try parse("For=\"[2001:db8:cafe::17]:4711\"")
                == [ForwardedHop(address: NetworkAddress("2001:db8:cafe::17"))])
        #expect(
            try parse("for=192.0.2.43, for=198.51.100.17;host=\"a.example:8\"")
                == [
                    ForwardedHop(address: NetworkAddress("192.0.2.43")),
                    ForwardedHop(address: NetworkAddress("198.51.100.17"), host: "a.example:8"),
                ])
        #expect(try parse("for=\"_gazonk\", for=unknown, for=_hidden").map(\.address) == [nil, nil, nil])
        #expect(try ForwardedHop.forwarded([]) == [])
        for text in [
            "for", "for=", "for=a", "for=1.2.3.4;for=1.2.3.4", "for=\"1.2.3.4", "for=[::1]x", "proto=ftp;for=1.2.3.4",
            "host=\"a b\"", "for=\"1.2.3.4:99999\"", "=x",
        ] {
            let error = #expect(throws: CacheError.self, "\(text)") { try parse(text) }
            #expect(error?.code == .malformedRequest)
        }
    }

    @Test("X-Forwarded-For is parsed with ports, and with the last scheme and host")
    func xForwardedForIsParsed() throws {
        let hops = try ForwardedHop.xForwardedFor(
            ["192.0.2.1, 2001:db8::1", "[2001:db8::2]:80,198.51.100.1:99,unknown"], protos: ["http, HTTPS"],
            hosts: ["a.example"])
        #expect(
            hops.map { $0.address?.description } == ["192.0.2.1", "2001:db8::1", "2001:db8::2", "198.51.100.1", nil])
        #expect(hops.allSatisfy { $0.proto == "https" && $0.host == "a.example" })
        for text in ["x", "1.2.3.4:", "1.2.3.4 5.6.7.8", "[::1", "::1]:8"] {
            #expect(throws: CacheError.self, "\(text)") { try ForwardedHop.xForwardedFor([text]) }
        }
    }
}
