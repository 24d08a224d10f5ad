import CacheCore
import Testing

@Suite struct ErrorDocumentTests {
    private static let namespace = "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\""

    @Test(
        "Codes of object stores and APIs have a reason",
        arguments: [
            ("<?xml version=\"1.0\"?>\n<Error><Code>RequestTimeout</Code><Message>Late</Message></Error>", .transient),
            ("<Error \(namespace)><Code>SlowDown</Code></Error>", .transient),
            ("<Error><Code>ExpiredToken</Code></Error>", .expiredToken),
            ("<Error><Code>AccessDenied</Code></Error>", .accessDenied),
            ("<Error><Code>SignatureDoesNotMatch</Code></Error>", nil), ("<html><h1>403</h1></html>", nil),
            (
                #"{"error":{"errors":[{"domain":"usageLimits","reason":"userRateLimitExceeded"}],"code":403}}"#,
                .transient
            ),
            (#"{"error":{"code":403,"errors":[{"reason":"rateLimitExceeded"}]}}"#, .transient),
            (#"{"error":{"code":403,"status":"RESOURCE_EXHAUSTED","details":[]}}"#, .transient),
            (#"{"error":{"status":"PERMISSION_DENIED","details":[{"reason":"RATE_LIMIT_EXCEEDED"}]}}"#, .transient),
            (#" {"__type":"com.amazon.coral.availability#ThrottlingException"}"#, .transient),
            (#"{"error":{"errors":[{"reason":"dailyLimitExceeded"}],"code":403}}"#, nil),
            (#"{"error":{"errors":[{"reason":"insufficientFilePermissions"}]}}"#, nil),
            (#"{"error":"userRateLimitExceeded"}"#, nil), (#"{"error":{"errors":[{"reason":"userRateLim"#, nil),
            ("rateLimitExceeded", nil), ("", nil), ("{", nil), ("<Code>", nil), ("[1]", nil),
        ] as [(String, ErrorDocument.Reason?)])
    func reasons(body: String, reason: ErrorDocument.Reason?) {
        #expect(ErrorDocument(Array(body.utf8)).reason == reason)
    }

    @Test("Only the first 4 KiB are read")
    func limit() {
        let space = String(repeating: " ", count: ErrorDocument.maxBytes)
        #expect(ErrorDocument(Array(("<Error>" + space + "<Code>SlowDown</Code>").utf8)).reason == nil)
        #expect(ErrorDocument(Array((#"{"code":"SlowDown"}"# + space).utf8)).reason == .transient)
    }

    @Test(
        "A busy or failing server is asked again (RFC 6585 §4, RFC 8470 §5.2, RFC 9110 §15.6.4)",
        arguments: [
            (408, true, false), (425, true, true), (429, true, true), (500, true, false), (502, true, false),
            (503, true, true), (504, true, false), (519, false, false), (520, true, true), (529, true, true),
            (530, false, false), (400, false, false), (401, false, false), (403, false, false), (404, false, false),
            (501, false, false),
        ])
    func statuses(status: Int, isTransient: Bool, isBusy: Bool) {
        #expect(CacheError.Code.isTransient(status) == isTransient)
        #expect(CacheError.Code.upstreamRefused(status: status).isOfBusyServer == isBusy)
        #expect(CacheError.Code.upstreamRefused(status: status, .init(reason: .transient)).isOfBusyServer)
    }

    @Test("A refusal with a known reason is not one of the range")
    func ranges() {
        #expect(CacheError.Code.upstreamRefused(status: 403).refusesRange)
        #expect(!CacheError.Code.upstreamRefused(status: 403, .init(reason: .accessDenied)).refusesRange)
        #expect(!CacheError.Code.upstreamRefused(status: 400, .init(reason: .transient)).refusesRange)
    }
}
