import CacheCore
import Foundation
import Logging
import Synchronization
import Testing

@testable import LarderServer

@Suite struct JSONLogHandlerTests {
    /// Collects the written log lines.
    private final class Lines: Sendable {
        let written = Mutex<[String]>([])
    }

    private let lines = Lines()

    private func logger(provider: Logger.MetadataProvider? = nil, fields: LogSettings.Fields = .larder) -> Logger {
        let lines = lines
        return Logger(label: "test") { label in
            var handler = JSONLogHandler(
                label: label, logLevel: .info, fields: fields, now: { Timestamp(milliseconds: 1_700_000_000_123) },
                write: { line in lines.written.withLock { $0.append(line) } })
            handler.metadataProvider = provider
            return handler
        }
    }

    private func onlyLine() throws -> String {
        let written = lines.written.withLock { $0 }
        try #require(written.count == 1)
        return written[0]
    }

    @Test("An event is one line with its fields in order")
    func anEventIsOneLineWithItsFieldsInOrder() throws {
        logger().warning("Upstream is slow", metadata: ["origin": "media", "attempt": .stringConvertible(3)])

        #expect(
            try onlyLine() == """
                {"time":"2023-11-14T22:13:20.123Z","level":"warning","logger":"test","message":"Upstream is slow",\
                "attempt":3,"origin":"media"}

                """)
    }

    @Test("Entries have the names of the Elastic Common Schema")
    func fieldsOfTheElasticCommonSchema() throws {
        logger(fields: .ecs).error(
            "a request failed",
            metadata: [
                "requestId": "r", "method": "GET", "path": "/o/media/a", "status": .stringConvertible(502),
                "bytes": .stringConvertible(Int64(7)), "totalSeconds": .stringConvertible(0.25), "traceId": "t",
                "client": "192.0.2.1", "token": "player", "code": "upstreamRefused", "origin": "media",
                "error": "Why.",
            ])
        #expect(
            try onlyLine() == """
                {"@timestamp":"2023-11-14T22:13:20.123Z","log.level":"error","message":"a request failed",\
                "ecs.version":"8.11.0","service.name":"larder","log.logger":"test","client.address":"192.0.2.1",\
                "error.code":"upstreamRefused","error.message":"Why.","event.duration":250000000,\
                "event.outcome":"failure","http.request.id":"r","http.request.method":"GET",\
                "http.response.body.bytes":7,"http.response.status_code":502,"larder.origin":"media",\
                "trace.id":"t","url.path":"/o/media/a","user.name":"player"}

                """)
    }

    @Test("Keys of entries that are about no request keep their meaning")
    func otherEntriesHaveNoFieldsOfRequests() throws {
        logger(fields: .ecs).info("file", metadata: ["path": "/etc/larder.yaml", "status": "new"])
        let line = try onlyLine()
        #expect(line.contains("\"larder.path\":\"/etc/larder.yaml\",\"larder.status\":\"new\"}"), "\(line)")
    }

    @Test(
        "Any text round-trips",
        arguments: [
            "plain", "quote \" and \\ backslash", "line\nbreak\r\n", "tab\t", "\u{0}\u{1}\u{1F}\u{7F}\u{9F}",
            "\u{2028}\u{2029}",
            "é 漢 👩‍👩‍👧 \u{FEFF}", "</script>", "",
        ])
    func anyTextComesBackAsItWas(text: String) throws {
        logger().info(
            "\(text)", metadata: ["key \(text)": .array([.string(text), .dictionary([text: .string(text)])])])

        let line = try onlyLine()
        let object = try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
        #expect(object["message"] as? String == text)
        let array = try #require(object["key \(text)"] as? [Any])
        #expect(array.first as? String == text)
        #expect(array.last as? [String: String] == [text: text])
        #expect(line.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).count == 2)
    }

    @Test("Metadata cannot override the fields of the event")
    func metadataCannotPoseAsTheEventsOwnFields() throws {
        logger().error("real", metadata: ["message": "forged", "level": "info"])

        let line = try onlyLine()
        #expect(line.contains("\"level\":\"error\""))
        #expect(line.contains("\"message\":\"real\""))
        #expect(line.contains("\"metadata.message\":\"forged\""))
    }

    @Test("The most specific metadata takes precedence")
    func theNearestMetadataWins() throws {
        var logger = logger(provider: Logger.MetadataProvider { ["a": "provider", "b": "provider", "c": "provider"] })
        logger[metadataKey: "a"] = "logger"
        logger.info("x", metadata: ["b": "event"])

        let line = try onlyLine()
        #expect(line.contains("\"b\":\"event\"") && line.contains("\"c\":\"provider\""))
    }

    @Test("Numbers and booleans are unquoted, and values JSON lacks are quoted")
    func numbersAndFlagsAreNotQuotedAndWhatJSONCannotSayIs() throws {
        logger().info(
            "x",
            metadata: [
                "i": .stringConvertible(-7), "d": .stringConvertible(0.5), "t": .stringConvertible(true),
                "n": .stringConvertible(Double.nan),
            ])

        let line = try onlyLine()
        #expect(line.contains("\"i\":-7") && line.contains("\"d\":0.5") && line.contains("\"t\":true"))
        #expect(line.contains("\"n\":\"nan\""))
    }

    @Test("Events below the level are not written")
    func quieterEventsThanTheLevelAreNotWritten() {
        logger().debug("unheard")

        #expect(lines.written.withLock { $0.isEmpty })
    }
}
