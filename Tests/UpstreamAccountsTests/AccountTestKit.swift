import CacheCore
import Synchronization
import UpstreamAccounts

/// Records requests and returns scripted responses in order.
final class ScriptedTransport: Sendable {
    private let responses: Mutex<[Result<UpstreamResponse, CacheError>]>
    private let recorded = Mutex<[UpstreamRequest]>([])

    init(_ responses: [Result<UpstreamResponse, CacheError>] = []) { self.responses = Mutex(responses) }

    var requests: [UpstreamRequest] { recorded.withLock(\.self) }

    func add(_ status: Int, _ body: String, headers: HeaderList = [:]) {
        let response = UpstreamResponse(
            head: UpstreamHead(status: status, headers: headers), body: Array(body.utf8))
        responses.withLock { $0.append(.success(response)) }
    }

    func add(_ error: CacheError) { responses.withLock { $0.append(.failure(error)) } }

    @Sendable func send(_ request: UpstreamRequest) async throws(CacheError) -> UpstreamResponse {
        recorded.withLock { $0.append(request) }
        let next = responses.withLock { $0.isEmpty ? nil : $0.removeFirst() }
        guard let next else { throw CacheError(.upstreamUnreachable(), "The script has no further response.") }
        return try next.get()
    }
}

/// A clock that tests set.
final class TestClock: WallClock {
    /// 2015-08-30T12:36:00Z, the time of the published vectors.
    static let start = Timestamp(seconds: 1_440_938_160)

    private let time = Mutex(start)

    func now() -> Timestamp { time.withLock(\.self) }
    func advance(by duration: Duration) { time.withLock { $0 = $0 + duration } }
}

/// Returns the same values each time.
struct FixedRandom: RandomSource {
    func uniform() -> Double { 0.5 }
    func identifier() -> String { "00000000000000000000000000000001" }
}

/// Refresh tokens in memory, with a log of all calls.
final class MemoryRefreshTokens: RefreshTokenStore {
    private let tokens = Mutex<[String: StoredRefreshToken]>([:])
    private let fails = Mutex(false)

    var isFailing: Bool {
        get { fails.withLock(\.self) }
        set { fails.withLock { $0 = newValue } }
    }

    func load(_ account: String) async throws(CacheError) -> StoredRefreshToken? {
        tokens.withLock { $0[account] }
    }

    func save(_ token: StoredRefreshToken, for account: String) async throws(CacheError) {
        if isFailing { throw CacheError(.storageFull, "The catalog is full.") }
        tokens.withLock { $0[account] = token }
    }

    subscript(account: String) -> String? { tokens.withLock { $0[account]?.token } }
}

/// An account with everything that it depends on.
final class TestAccount: Sendable {
    let transport = ScriptedTransport()
    let clock = TestClock()
    let store = MemoryRefreshTokens()
    private let files = Mutex<[String: String]>([:])
    private let reads = Mutex<[String]>([])
    private let created = Mutex<UpstreamAccount?>(nil)

    /// The paths that were read, in order; absolute ones begin with `/`.
    var readPaths: [String] { reads.withLock(\.self) }

    init(environment: [String: String] = [:], files: [String: String] = [:], _ change: (inout OriginAuth) -> Void) {
        var settings = OriginAuth()
        change(&settings)
        self.files.withLock { $0 = files }
        let account = account(settings, environment)
        created.withLock { $0 = account }
    }

    /// Another account with the same dependencies, as after a restart.
    func account(_ settings: OriginAuth, _ environment: [String: String]) -> UpstreamAccount? {
        let read: AccountDependencies.FileReader = { [self] path throws(CacheError) in
            reads.withLock { $0.append(path) }
            guard let text = files.withLock({ $0[path] }) else {
                throw CacheError(.internal, "The file \(path) does not exist.")
            }
            return Array(text.utf8)
        }
        return UpstreamAccount(
            origin: "media", settings: settings,
            dependencies: AccountDependencies(
                send: transport.send, readFile: read, readAbsoluteFile: read, environment: environment,
                wallClock: clock, random: FixedRandom(), refreshTokens: store))
    }

    func write(_ text: String, to path: String) { files.withLock { $0[path] = text } }

    var account: UpstreamAccount {
        get throws {
            guard let account = created.withLock(\.self) else { throw CacheError(.internal, "No account.") }
            return account
        }
    }

    var state: AccountState { get throws { try account.state(at: clock.now()) } }

    func refresh() async throws { try await account.refresh() }

    /// The error of a refresh that must fail.
    func refreshError() async throws -> CacheError {
        do throws(CacheError) {
            try await created.withLock(\.self)?.refresh()
        } catch {
            return error
        }
        throw CacheError(.internal, "The refresh did not fail.")
    }

    func authorize(
        _ method: String = "GET", _ url: String = "https://media.example/k", _ headers: HeaderList = [:],
        body: [UInt8] = []
    ) throws -> AuthorizedRequest {
        try account.authorize(method: method, url: .test(url), headers: headers, body: body, at: clock.now())
    }

    func refused(_ status: Int, _ headers: HeaderList = [:], revision: Int) throws -> Bool {
        try account.refused(status: status, headers: headers, revision: revision, at: clock.now())
    }
}

extension UpstreamURL {
    /// Splits a valid URL.
    static func test(_ text: String) -> UpstreamURL {
        let isSecure = text.hasPrefix("https")
        let rest = text.split(separator: "/", maxSplits: 2, omittingEmptySubsequences: false)[2]
        let authority = rest.prefix { $0 != "/" && $0 != "?" }
        let parts = authority.split(separator: ":")
        let tail = rest.dropFirst(authority.count)
        let halves = tail.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        return UpstreamURL(
            scheme: isSecure ? .https : .http, host: String(parts[0]),
            port: parts.count > 1 ? Int(parts[1]) ?? 0 : isSecure ? 443 : 80,
            path: halves.first.map(String.init) ?? "/", query: halves.count > 1 ? String(halves[1]) : nil, text: text)
    }
}

extension UpstreamRequest {
    /// The body as text.
    var text: String { String(decoding: body, as: UTF8.self) }
}

extension AuthorizedRequest {
    /// The end of the `Authorization` field.
    var signature: String? { headers["Authorization"]?.split(separator: "Signature=").last.map(String.init) }
}
