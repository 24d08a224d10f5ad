import CacheTestKit
import Foundation
import Testing

@testable import LarderServer

@Suite struct SupervisorTests {
    @Test("The states have the lines of sd_notify(3)")
    func states() {
        #expect(Supervisor.Notice.ready(status: "Serving").text == "READY=1\nSTATUS=Serving")
        #expect(
            Supervisor.Notice.reloading(at: .milliseconds(1500)).text
                == "RELOADING=1\nMONOTONIC_USEC=1500000\nSTATUS=Reloading the configuration")
        #expect(
            Supervisor.Notice.stopping(status: "Ending").text
                == "STOPPING=1\nEXTEND_TIMEOUT_USEC=30000000\nSTATUS=Ending")
        #expect(Supervisor.Notice.alive.text == "WATCHDOG=1")
    }

    @Test(
        "A watchdog needs a socket, a time above zero and this process",
        arguments: [
            (["NOTIFY_SOCKET": "/run/x", "WATCHDOG_USEC": "2000000"], Duration.seconds(2)),
            (["NOTIFY_SOCKET": "@x", "WATCHDOG_USEC": "2000000", "WATCHDOG_PID": "7"], .seconds(2)),
            (["NOTIFY_SOCKET": "/run/x", "WATCHDOG_USEC": "2000000", "WATCHDOG_PID": "8"], nil),
            (["NOTIFY_SOCKET": "/run/x", "WATCHDOG_USEC": "0"], nil),
            (["NOTIFY_SOCKET": "/run/x", "WATCHDOG_USEC": "soon"], nil),
            (["NOTIFY_SOCKET": "run/x", "WATCHDOG_USEC": "2000000"], nil),
            (["WATCHDOG_USEC": "2000000"], nil), ([:], nil),
        ] as [([String: String], Duration?)])
    func watchdogs(environment: [String: String], limit: Duration?) {
        #expect(Supervisor(environment: environment, process: 7).watchdog == limit)
    }

    @Test("A state arrives at the socket as one datagram")
    func datagrams() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/notify"
        let receiver = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
        defer { close(receiver) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let bound = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(receiver, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        try #require(bound == 0)

        Supervisor(environment: ["NOTIFY_SOCKET": path], process: 7).notify(.alive)

        var bytes = [UInt8](repeating: 0, count: 64)
        let count = recv(receiver, &bytes, bytes.count, Int32(MSG_DONTWAIT))
        #expect(String(decoding: bytes.prefix(max(0, count)), as: UTF8.self) == "WATCHDOG=1")
    }
}
