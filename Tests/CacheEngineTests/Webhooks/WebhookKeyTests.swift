import CacheCore
import Testing

@testable import CacheEngine

@Suite struct WebhookKeyTests {
    private let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    private let message = "msg_p5jXN8AQM9LWM0D4loKWxJek"
    private let payload = #"{"test": 2432232314}"#

    @Test("A signature is that of the published example of Standard Webhooks")
    func theSignatureIsThatOfTheStandard() throws {
        let key = try #require(WebhookKey(secret))
        #expect(
            key.signature(of: payload, message: message, timestamp: 1_614_265_330)
                == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
    }

    @Test("A request has one signature for each key")
    func eachKeySigns() throws {
        let keys = [
            try #require(WebhookKey(secret)), try #require(WebhookKey("whsec_" + String(repeating: "A", count: 32))),
        ]
        let fields = keys.fields(of: payload, message: message, at: Timestamp(milliseconds: 1_614_265_330_999))
        #expect(fields["webhook-id"] == message && fields["webhook-timestamp"] == "1614265330")
        let signatures = (fields["webhook-signature"] ?? "").split(separator: " ")
        #expect(signatures.count == 2 && Set(signatures).count == 2 && signatures.allSatisfy { $0.hasPrefix("v1,") })
        #expect(signatures.first == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
    }

    @Test(
        "A secret is whsec_ with 24 to 64 bytes in Base64",
        arguments: [
            ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", true),
            ("whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", true),
            ("whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", true),
            ("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", false), ("whsec_", false), ("whsec_MfKQ9r8GKYqrTwjU", false),
            ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS!", false), ("whsec_" + String(repeating: "A", count: 88), false),
            ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw====", false),
        ])
    func badSecretsAreRefused(text: String, isKey: Bool) {
        #expect((WebhookKey(text) != nil) == isKey)
    }

    @Test("A key is not printed")
    func keysAreNotPrinted() throws {
        let key = try #require(WebhookKey(secret))
        var dumped = ""
        dump(WebhookSettings(name: "a", url: "http://a", keys: [key]), to: &dumped)
        #expect(!dumped.contains("49, 242") && !"\(key)".contains("49") && !dumped.contains("Mf"))
    }
}
