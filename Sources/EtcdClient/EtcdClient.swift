package import CacheCore
import Foundation

/// A client of etcd 3.4 and later over its JSON gateway (`/v3/…`). Thread-safe.
///
/// A request goes to the member that answered last, and to the others if that fails. All reads are linearizable.
package final class EtcdClient: Sendable {
    private struct State {
        /// The index of the member that is asked first.
        var preferred = 0
        /// The token of the user; nil: none was requested yet, or etcd has refused it.
        var token: String?
    }

    /// The name by which the limits of transfers count the requests.
    private static let originName = "(etcd)"
    /// The largest answer in bytes: a hundred origins or purges.
    private static let bodyLimit = 32 << 20
    /// The time limit for the answer of one member.
    private static let limit = Duration.seconds(3)

    private let settings: EtcdSettings
    private let upstream: any Upstream
    private let state = OrderedMutex(.leaf, State())

    package init(_ settings: EtcdSettings, over upstream: any Upstream) {
        self.settings = settings
        self.upstream = upstream
    }

    // MARK: Calls

    /// Carries out a transaction. After an error it may have been carried out nevertheless. Throws `.fleetUnavailable` if
    /// no member with a leader answers, and `.notFound` for an unknown lease.
    package func commit(_ transaction: EtcdTransaction) async throws(CacheError) -> EtcdResult {
        try await call("/v3/kv/txn", transaction.json, as: TransactionDocument.self).result()
    }

    /// Creates a lease. Keys that are put with it are deleted unless it is kept alive within `lifetime`.
    package func grantLease(for lifetime: Duration) async throws(CacheError) -> Int64 {
        let seconds = String(lifetime.components.seconds)
        let lease = try await call("/v3/lease/grant", ["TTL": .string(seconds)], as: LeaseDocument.self)
        guard let id = lease.ID.flatMap({ Int64($0) }) else { throw Self.malformed }
        return id
    }

    /// Renews a lease; returns false if it has ended.
    package func keepAlive(_ lease: Int64) async throws(CacheError) -> Bool {
        let answer = try await call(
            "/v3/lease/keepalive", ["ID": .string(String(lease))], as: KeepAliveDocument.self)
        return answer.result?.TTL.flatMap { Int64($0) } ?? 0 > 0
    }

    /// Ends a lease, and with it its keys, also in a cancelled task. Without an answer the lease ends by its own limit.
    package func abandon(_ lease: Int64) async {
        let (member, token) = state.withLock { ($0.preferred, $0.token) }
        var request = Self.request(
            settings.endpoints[member] + "/v3/lease/revoke", ["ID": .string(String(lease))], settings.tls)
        if let token { request.originHeaders = ["Authorization": token] }
        let exchange = BufferedExchange(bodyLimit: Self.bodyLimit)
        _ = upstream.start(request, delivering: exchange)
        _ = await exchange.outcome()
    }

    /// Follows the changes of the keys with this prefix until the stream ends, and then throws. `changed` is called for the
    /// beginning of the stream and for each change after it, on a thread of the upstream client.
    package func watch(_ prefix: String, changed: @escaping @Sendable () -> Void) async throws(CacheError) {
        let range: JSON = [
            "key": prefix.base64, "range_end": EtcdTransaction.Operation.end(of: prefix).base64,
        ]
        let member = state.withLock { $0.preferred }
        var request = try await request("/v3/watch", ["create_request": range], to: settings.endpoints[member])
        request.timeouts = TransferTimeouts(connect: Self.limit, firstByte: Self.limit, idle: nil, total: nil)
        // The documents are not read, because a change is the reason for reading the present state.
        let (_, end) = await upstream.lines(of: request) { status in
            CacheError(.fleetUnavailable, "The stream of etcd's changes is refused with status \(status).")
        } body: { _ in
            changed()
        }
        throw end.error ?? CacheError(.fleetUnavailable, "The stream of etcd's changes has ended.")
    }

    // MARK: Requests

    private func call<Document: Decodable>(
        _ path: String, _ body: JSON, as type: Document.Type
    ) async throws(CacheError) -> Document {
        let answer = try await answer(path, body)
        do {
            return try JSONParser.parse(answer).decode(isStrict: false)
        } catch {
            throw Self.malformed
        }
    }

    /// The body of the first member's answer. A refused token is requested anew once.
    private func answer(_ path: String, _ body: JSON) async throws(CacheError) -> [UInt8] {
        let first = state.withLock { $0.preferred }
        var failure = CacheError(.fleetUnavailable, "No member of etcd is configured.")
        for offset in settings.endpoints.indices {
            let member = (first + offset) % settings.endpoints.count
            do throws(CacheError) {
                let answer = try await answer(path, body, of: member)
                state.withLock { $0.preferred = member }
                return answer
            } catch {
                guard error.code == .fleetUnavailable else { throw error }
                failure = error
            }
        }
        throw failure
    }

    private func answer(_ path: String, _ body: JSON, of member: Int) async throws(CacheError) -> [UInt8] {
        let endpoint = settings.endpoints[member]
        var isFirst = true
        while true {
            let response: UpstreamResponse
            do throws(CacheError) {
                response = try await upstream.exchange(
                    request(path, body, to: endpoint), bodyLimit: Self.bodyLimit)
            } catch {
                guard error.code != .cancelled, error.code != .shuttingDown else { throw error }
                throw CacheError(
                    .fleetUnavailable, "The member of etcd at \(endpoint) does not answer: \(error.message)",
                    cause: error)
            }
            guard response.status != 200 else { return response.body }
            let refusal = Refusal(response.body)
            let isTokenRefused = refusal.isUnauthenticated || response.status == 401
            guard isTokenRefused, isFirst, settings.user != nil else {
                throw refusal.error(of: endpoint, status: response.status)
            }
            isFirst = false
            state.withLock { $0.token = nil }
        }
    }

    private func request(
        _ path: String, _ body: JSON, to endpoint: String
    ) async throws(CacheError) -> UpstreamRequest {
        var request = Self.request(endpoint + path, body, settings.tls)
        if let token = try await token(at: endpoint) { request.originHeaders = ["Authorization": token] }
        return request
    }

    private static func request(_ url: String, _ body: JSON, _ tls: TLSSettings) -> UpstreamRequest {
        var request = UpstreamRequest(
            method: .post, url: url, headers: ["Content-Type": "application/json"], originName: originName,
            timeouts: TransferTimeouts(connect: .seconds(1), firstByte: limit, idle: limit, total: limit),
            allowPrivateAddresses: true, tls: tls)
        request.body = Array(body.text.utf8)
        request.followsRedirects = false
        return request
    }

    /// The token of the user, which is requested if there is none; nil without a user.
    private func token(at endpoint: String) async throws(CacheError) -> String? {
        guard let user = settings.user else { return nil }
        if let token = state.withLock({ $0.token }) { return token }
        let body: JSON = ["name": .string(user.name), "password": .string(user.password)]
        let request = Self.request(endpoint + "/v3/auth/authenticate", body, settings.tls)
        let response = try await upstream.exchange(request, bodyLimit: Self.bodyLimit)
        guard response.status == 200 else {
            throw CacheError(
                .fleetUnavailable,
                "The user \(user.name) is refused by etcd at \(endpoint): \(Refusal(response.body).message).")
        }
        let token = (try? JSONParser.parse(response.body))?["token"]?.string
        guard let token else { throw Self.malformed }
        state.withLock { $0.token = token }
        return token
    }

    package static let malformed = CacheError(
        .fleetUnavailable, "The response is not one of etcd's JSON gateway; check fleet.etcd.endpoints.")
}

/// The response to calls about leases.
private struct LeaseDocument: Decodable {
    var ID: String?
}

/// The response to a renewal. It has no `TTL` if the lease has ended.
private struct KeepAliveDocument: Decodable {
    struct Result: Decodable {
        var TTL: String?
    }

    var result: Result?
}

/// An error document of the gateway.
private struct Refusal {
    private static let (notFound, unauthenticated) = (Int64(5), Int64(16))

    let message: String
    /// The status of gRPC.
    private let code: Int64?

    /// Text behind the document, which the gateway of etcd 3.4 adds, is ignored.
    init(_ body: [UInt8]) {
        let document = body.prefix(body.lastIndex(of: UInt8(ascii: "}")).map { $0 + 1 } ?? 0)
        let json = try? JSONParser.parse(document)
        message = json?["message"]?.string ?? json?["error"]?.string ?? "no reason is given"
        if case .integer(let number)? = json?["code"] { code = number } else { code = nil }
    }

    /// Whether the token is unknown or has expired. etcd 3.4 says so with another code after a change of its users.
    var isUnauthenticated: Bool { code == Self.unauthenticated || message.contains("invalid auth token") }

    func error(of endpoint: String, status: Int) -> CacheError {
        if code == Self.notFound { return CacheError(.notFound, "The answer of etcd at \(endpoint) is: \(message).") }
        return CacheError(
            .fleetUnavailable, "The member of etcd at \(endpoint) answers with status \(status): \(message).")
    }
}
