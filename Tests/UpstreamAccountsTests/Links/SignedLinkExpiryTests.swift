import CacheCore
import Testing
import UpstreamAccounts

@Suite struct SignedLinkExpiryTests {
    @Test(
        "A signed URL states its own expiry",
        arguments: [
            ("https://b.example/k?X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-Signature=00", 1_369_440_000),
            ("https://b.example/k?x-amz-expires=60&a=b&x-amz-date=20130524T000000Z", 1_369_353_660),
            ("https://b.example/k?X-Goog-Date=20260131T120000Z&X-Goog-Expires=900#part", 1_769_861_700),
            ("https://b.example/k?AWSAccessKeyId=A&Expires=1769860800&Signature=s%3D", 1_769_860_800),
            ("https://b.example/k?GoogleAccessId=a%40b&Expires=1769860800&Signature=s", 1_769_860_800),
            ("https://cdn.example/k?Expires=1769860800&Key-Pair-Id=K1", 1_769_860_800),
            ("https://a.example/c/b?sv=2022-11-02&se=2026-01-31T12%3A00%3A00Z&sr=b&sig=s%3D", 1_769_860_800),
            ("https://a.example/c/b?se=2026-01-31T12:00Z&sig=s", 1_769_860_800),
            ("https://a.example/c/b?se=2026-01-31&sig=s", 1_769_817_600),
        ])
    func statesExpiry(url: String, seconds: Int64) {
        #expect(SignedLinkExpiry.expiry(of: url) == Timestamp(seconds: seconds))
    }

    @Test(
        "A URL without a readable expiry has none",
        arguments: [
            "https://b.example/k", "https://b.example/k?", "https://b.example/k?Expires=1769860800",
            "https://b.example/k?Policy=abc&Signature=s&Key-Pair-Id=K1",
            "https://a.example/c/b?se=2026-01-31T12:00:00Z",
            "https://b.example/k?X-Amz-Date=20130524T000000Z", "https://b.example/k?X-Amz-Expires=60",
            "https://b.example/k?X-Amz-Date=2013-05-24T00Z&X-Amz-Expires=60",
            "https://b.example/k?X-Amz-Date=20131324T000000Z&X-Amz-Expires=60",
            "https://b.example/k?X-Amz-Date=20130524T000000Z&X-Amz-Expires=-1",
            "https://b.example/k?Expires=99999999999999999999&Signature=s",
            "https://b.example/k?Expires=soon&Signature=s",
            "https://b.example/k#?Expires=1769860800&Signature=s",
        ])
    func statesNoExpiry(url: String) {
        #expect(SignedLinkExpiry.expiry(of: url) == nil)
    }
}
