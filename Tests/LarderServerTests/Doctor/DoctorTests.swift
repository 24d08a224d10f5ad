import CacheCore
import Testing

@testable import LarderServer

/// The rules of `larder doctor` for single facts.
@Suite struct DoctorTests {
    private let now = Timestamp(seconds: 1_800_000_000)

    private func risks(_ flags: [(name: String, text: String)]) throws -> [String] {
        Doctor.risks(of: try LarderSettings(flags: flags)).map(\.subject)
    }

    @Test("The exit status is that of the gravest finding")
    func exitStatuses() {
        let findings: [Finding] = [.ok("a", "A."), .warning("b", "B."), .error("c", "C.")]
        #expect((0...3).map { DoctorReport(findings: Array(findings.prefix($0))).exitStatus } == [0, 0, 1, 2])
        #expect(
            DoctorReport(findings: findings).text
                == "ok       a  A.\nwarning  b  B.\nerror    c  C.\n1 error, 1 warning")
    }

    @Test(
        "Kernels before 6.5 cause a warning",
        arguments: [
            ("6.1.0-18-amd64", Finding.Level.warning), ("5.15.0", .warning), ("6.5.0", .ok), ("6.12.1+rpi", .ok),
            ("7.0", .ok), ("unknown", .ok),
        ])
    func kernels(release: String, level: Finding.Level) {
        #expect(Doctor.kernel(release).level == level)
    }

    @Test("Limits on open files: below the minimum, small, large")
    func openFiles() {
        #expect(
            [64, 1024, 65_536].map { Doctor.openFiles(OpenFileBudget(limit: $0)).level } == [.error, .warning, .ok])
    }

    @Test("A clock in the past is an error, and one without synchronization a warning")
    func clocks() {
        #expect(Doctor.clock(isSynchronized: 1, now: Timestamp(seconds: 0)).level == .error)
        #expect([0, 1, -1].map { Doctor.clock(isSynchronized: $0, now: now).level } == [.warning, .ok, .ok])
    }

    @Test("Fleets: keys over public networks, and nodes that accept no others, cause warnings")
    func fleets() {
        var fleet = FleetSettings()
        fleet.peers = ["http://10.0.0.1:8080", "http://[fd00::1]:8080", "http://larder-1:8080", "https://8.8.8.8"]
        #expect(Doctor.risks(of: fleet).map(\.subject) == ["fleet.peerCertificates"])
        fleet.keys = [MaskedSecret(String(repeating: "k", count: 32))]
        #expect(Doctor.risks(of: fleet) == [])
        fleet.peers = ["http://8.8.8.8:8080"]
        #expect(Doctor.risks(of: fleet).map(\.subject) == ["fleet.peers"])
        fleet.peers = ["http://[2001:4860:4860::8888]:8080"]
        #expect(Doctor.risks(of: fleet).map(\.subject) == ["fleet.peers"])
    }

    @Test("Certificates: valid, expiring within 14 days, expired")
    func certificates() {
        let levels = [15, 13, 0].map { (days: Int64) in
            let end = Timestamp(milliseconds: now.milliseconds + days * 86_400_000)
            return Doctor.certificate("listen.tls.certificateFile", expiring: end, at: now).level
        }
        #expect(levels == [.ok, .warning, .error])
    }

    @Test("The capacity is compared with the disk")
    func space() {
        var policy = PolicySettings(capacityBytes: 100, minFreeDiskBytes: 10)
        #expect(Doctor.space(policy, size: 110, free: 50).level == .ok)
        #expect(Doctor.space(policy, size: 109, free: 50).subject == "policy.capacity")
        #expect(Doctor.space(policy, size: 110, free: 9).subject == "policy.minFreeDisk")
        policy.capacityBytes = nil
        #expect(Doctor.space(policy, size: 50, free: 20).level == .ok)
    }

    @Test("Risky combinations of settings cause warnings")
    func riskySettings() throws {
        let token = ("access.token", "0123456789abcdef")
        let remote = ("listen.address", "0.0.0.0:8080")
        #expect(try risks([]) == [])
        #expect(try risks([remote, ("access.allowUnauthenticated", "true")]) == ["access.allowUnauthenticated"])
        #expect(try risks([remote, token]) == ["listen.tls.certificateFile"])
        #expect(try risks([("access.token", "short")]) == ["access.token"])
        #expect(try risks([("cors.allowedOrigins", "*")]) == ["cors.allowedOrigins"])
        #expect(
            try risks([
                ("origins.a.baseURL", "http://a.example"), ("origins.a.tls.verify", "false"),
                ("origins.a.headers.Authorization", "Bearer x"),
            ]) == ["origins.a.tls.verify", "origins.a.baseURL"])
    }
}
