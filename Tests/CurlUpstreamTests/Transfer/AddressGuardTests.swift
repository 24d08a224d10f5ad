import CacheCore
import Glibc
import Testing

struct AddressGuardTests {
    private func bytes(_ text: String) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: 16)
        if inet_pton(AF_INET, text, &bytes) == 1 { return Array(bytes[..<4]) }
        return inet_pton(AF_INET6, text, &bytes) == 1 ? bytes : []
    }

    @Test(
        "Special IPv4 addresses are refused",
        arguments: [
            "0.0.0.0", "0.255.255.255", "10.0.0.1", "10.255.255.255", "100.64.0.0", "100.127.255.255", "127.0.0.1",
            "127.9.9.9",
            "169.254.0.1", "169.254.169.254", "172.16.0.0", "172.31.255.255", "192.0.0.1", "192.0.0.255", "192.0.2.1",
            "192.88.99.1", "192.168.0.1", "192.168.255.255", "198.18.0.1", "198.19.255.255", "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
        ])
    func specialIPv4AddressesAreRefused(_ address: String) {
        #expect(AddressGuard.refusal(of: bytes(address)) != nil)
    }

    @Test(
        "Public IPv4 addresses are allowed",
        arguments: [
            "1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0",
            "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "191.255.255.255", "192.0.1.0",
            "192.167.255.255",
            "192.169.0.0", "198.17.255.255", "198.20.0.0", "223.255.255.255", "8.8.8.8",
        ])
    func publicIPv4AddressesAreAllowed(_ address: String) {
        #expect(AddressGuard.refusal(of: bytes(address)) == nil)
    }

    @Test(
        "Special IPv6 addresses are refused",
        arguments: [
            "::", "::1", "::2", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1",
            "::10.1.2.3",
            "::ffff:0:192.168.0.1", "64:ff9b::127.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b:1::8.8.8.8", "64:ff9b:1:2::1",
            "2002:7f00:1::", "2002:a00:1::1", "2002:c0a8:101::1", "2001:0:a00:1::", "2001:0:808:808:0:0:f5ff:fffe",
            "2001:0:808:808:0:0:80ff:fffe", "fc00::1", "fdff:ffff::1", "fe80::1", "febf::1", "fec0::1", "ff02::1",
            "ff0e::1",
            "100::1", "2001:db8::1", "2001:2::1", "2001:10::1", "2001:20::1", "3fff::1", "4000::1", "5f00::1",
            "8000::1",
            "2606:4700::5efe:10.0.0.1", "2606:4700::200:5efe:192.168.1.1",
        ])
    func specialIPv6AddressesAreRefused(_ address: String) {
        #expect(bytes(address).count == 16)
        #expect(AddressGuard.refusal(of: bytes(address)) != nil)
    }

    @Test(
        "Public IPv6 addresses are allowed",
        arguments: [
            "2606:4700:4700::1111", "2a00:1450:4001:81b::200e", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2002:808:808::1",
            "2001:0:808:808:0:0:f7f7:f7f7", "2001:4860:4860::8888", "2606:4700::5efe:8.8.8.8",
        ])
    func publicIPv6AddressesAreAllowed(_ address: String) {
        #expect(bytes(address).count == 16)
        #expect(AddressGuard.refusal(of: bytes(address)) == nil)
    }

    @Test(
        "Metadata services are never allowed",
        arguments: [
            "169.254.169.254", "169.254.0.7", "100.100.100.200", "168.63.129.16", "fd00:ec2::254", "fd20:ce::254",
            "fe80::a9fe:a9fe", "::ffff:169.254.169.254", "::ffff:100.100.100.200", "::168.63.129.16",
            "64:ff9b::169.254.169.254",
            "64:ff9b::100.100.100.200", "2002:a9fe:a9fe::1", "2002:6464:64c8::1", "::ffff:0:168.63.129.16",
            "2001:0:a9fe:a9fe::", "2001:0:a00:1::5601:5601", "64:ff9b:1::a9fe:a9fe", "64:ff9b:1:a9fe:a9:fe00::",
            "64:ff9b:1::100.100.100.200", "fd00::5efe:a9fe:a9fe", "2606:4700::200:5efe:168.63.129.16",
        ])
    func metadataServicesAreNeverAllowed(_ address: String) throws {
        let kind = try #require(AddressGuard.refusal(of: bytes(address)))
        #expect(AddressGuard.isNeverAllowed(kind))
    }

    @Test(
        "Private addresses can be allowed",
        arguments: ["10.0.0.1", "127.0.0.1", "192.168.0.1", "100.100.100.201", "fd00:ec2::255", "::1"])
    func privateAddressesCanBeAllowed(_ address: String) throws {
        let kind = try #require(AddressGuard.refusal(of: bytes(address)))
        #expect(!AddressGuard.isNeverAllowed(kind))
    }

    @Test("Bytes that are no address are refused", arguments: [0, 3, 5, 15, 17])
    func whatIsNoAddressIsRefused(_ count: Int) {
        #expect(AddressGuard.refusal(of: [UInt8](repeating: 8, count: count)) != nil)
    }

    @Test("The refusal names the kind of address")
    func theRefusalNamesTheKind() {
        #expect(AddressGuard.refusal(of: [10, 0, 0, 1]) == "private")
        #expect(AddressGuard.refusal(of: bytes("64:ff9b::169.254.169.254")) == "NAT64 of a link-local")
    }
}

@Suite struct NeverAllowedTests {
    @Test(
        "Link-local addresses stay refused if private ones are allowed",
        arguments: [
            ([169, 254, 169, 254] as [UInt8], true), ([0, 0, 0, 0], true), ([224, 0, 0, 1], true),
            ([127, 0, 0, 1], false), ([10, 1, 2, 3], false), ([192, 168, 0, 1], false),
        ])
    func linkLocalAddressesStayRefusedWherePrivateOnesAreAllowed(_ address: [UInt8], isNever: Bool) throws {
        let kind = try #require(AddressGuard.refusal(of: address))
        #expect(AddressGuard.isNeverAllowed(kind) == isNever)
    }
}
