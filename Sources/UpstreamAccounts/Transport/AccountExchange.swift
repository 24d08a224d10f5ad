import CacheCore

/// Sends the requests of one refresh, and records the clock of the servers that answer.
final class AccountExchange: Sendable {
    /// The limit for an exchange with a service.
    static let serviceTimeout = Duration.seconds(15)
    /// The limit for an exchange with a metadata service; it is on the same machine.
    static let metadataTimeout = Duration.seconds(5)

    let dependencies: AccountDependencies
    /// The time at the servers minus the local time, as known before the refresh.
    let skew: Duration
    /// The skew according to the last response that refused a request.
    private let refusedSkew = OrderedMutex<Duration?>(.leaf, nil)
    /// Whether the last service did not answer, or answered that it is busy or failing.
    private let isFailing = OrderedMutex(.leaf, false)

    init(_ dependencies: AccountDependencies, skew: Duration) {
        self.dependencies = dependencies
        self.skew = skew
    }

    /// The local time.
    var now: Timestamp { dependencies.wallClock.now() }
    /// The time at the servers, for signatures.
    var serverNow: Timestamp { now + skew }

    /// The skew that a refusal stated, if it differs enough from the known one to be the reason of the refusal.
    var learnedSkew: Duration? { refusedSkew.withLock(\.self) }

    /// Whether the refresh failed for a reason that can pass: the same requests may succeed a moment later.
    var isServiceFailing: Bool { isFailing.withLock(\.self) }

    /// Sends a request. The body of a response is limited; other checks are the caller's.
    func send(_ request: UpstreamRequest) async throws(CacheError) -> UpstreamResponse {
        let response: UpstreamResponse
        do {
            response = try await dependencies.send(request)
        } catch {
            isFailing.withLock { $0 = error.code.isWorthRetrying }
            throw error
        }
        let isTransient =
            CacheError.Code.isTransient(response.status) || ErrorDocument(response.body).reason == .transient
        isFailing.withLock { $0 = response.status != 200 && isTransient }
        guard response.body.count <= AccountDependencies.bodyLimit else {
            throw CacheError(
                .upstreamProtocol, "A response with credentials exceeds \(AccountDependencies.bodyLimit) bytes.")
        }
        if [400, 401, 403].contains(response.status) {
            let learned = ClockSkew.learned(from: response.headers, at: now, known: skew)
            refusedSkew.withLock { $0 = learned }
        }
        return response
    }

    /// The local time of an absolute time that a server stated.
    func local(_ time: Timestamp) -> Timestamp { time - skew }
}

extension UpstreamRequest {
    /// A request for credentials. Redirects are not followed, because the request contains secrets. `timeout`: the limit
    /// for the whole exchange.
    init(
        _ method: Method, _ url: String, headers: HeaderList, body: [UInt8] = [],
        timeout: Duration = AccountExchange.serviceTimeout
    ) {
        self.init(method: method, url: url, headers: headers, timeouts: TransferTimeouts(all: timeout))
        self.body = body
        followsRedirects = false
    }
}

/// The difference between a server's clock and the local one.
enum ClockSkew {
    /// The smallest difference that is corrected. Services tolerate 5 to 15 minutes.
    static let leastDifference = Duration.seconds(60)

    /// The skew according to the `Date` of a refusal. Nil if it is about the known skew, or if the response comes from
    /// a cache and its date is old.
    static func learned(from headers: HeaderList, at now: Timestamp, known: Duration) -> Duration? {
        guard headers["Age"] == nil, let date = headers["Date"].flatMap({ HTTPDate.parse($0, now: now) }) else {
            return nil
        }
        let skew = date.since(now)
        let change = skew - known
        return change > leastDifference || change < .zero - leastDifference ? skew : nil
    }
}
