import CacheCore
import CacheTracing

/// Requests response heads of an asset from its upstream. After the first refusal of the credentials or the link, others
/// are obtained and the request is repeated once. Mirrors are not asked: only the origin defines its content.
struct HeadProbe {
    let target: AssetTarget
    let upstreams: Upstreams
    let priority: TransferPriority
    let trace: FillTrace
    /// Nil for the test of an origin: it is sent although a circuit is open, and changes no belief about the origin.
    private let health: OriginHealth?
    /// Whether other credentials or another link were obtained; this happens once in a probe.
    private var hasNewCredentials = false

    init(
        target: AssetTarget, over upstreams: Upstreams, tracer: Tracer, priority: TransferPriority, isTest: Bool = false
    ) {
        self.target = target
        health = isTest ? nil : upstreams.health
        self.upstreams = upstreams
        self.priority = priority
        trace = FillTrace("probe", tracer: tracer)
    }

    /// Returns the response head of a request. Throws `ProbeFailure` if there is none, and for a target that only a
    /// reader may request.
    mutating func ask(
        _ method: UpstreamRequest.Method, for window: UpstreamRequest.Window
    ) async throws(ProbeFailure) -> UpstreamHead {
        do { _ = try target.authorized(by: target.forwarded) } catch { throw ProbeFailure(error: error) }
        health?.asked(target)
        let access = try await access()
        let head = try await head(method, window, access)
        guard !hasNewCredentials else { return head }
        // Some links are for GET only.
        let isOfLink = method != .get && access.link != nil
        guard await upstreams.renew(isOfLink ? nil : access, to: target, after: head) else { return head }
        hasNewCredentials = true
        return try await self.head(method, window, try await self.access())
    }

    private func access() async throws(ProbeFailure) -> UpstreamAccess {
        do {
            return try await upstreams.accounts.access(to: target, for: .description, over: upstreams)
        } catch {
            throw ProbeFailure(error: error)
        }
    }

    private func head(
        _ method: UpstreamRequest.Method, _ window: UpstreamRequest.Window, _ access: UpstreamAccess
    ) async throws(ProbeFailure) -> UpstreamHead {
        var request = upstreams.request(to: target, priority: priority)
        request.method = method
        request.window = window
        if let link = access.link { request.url = link.url }
        access.apply(to: &request)
        target.propagate(trace.context, in: &request.headers)
        let permit = try leave()
        do {
            let head = try await upstreams.client.head(of: request)
            settle(permit, OriginHealth.Evidence(status: head.status))
            if head.status < 300 { health?.redirected(head, of: target, from: request.url) }
            trace.span?.describe(target, method, status: head.status)
            return head
        } catch {
            settle(permit, error.error.evidence)
            trace.span?.describe(target, method, status: nil)
            trace.span?.fail(error.error.code.name)
            throw error
        }
    }

    /// A permit for the origin's own address, nil for a test; throws if its circuit is open.
    private func leave() throws(ProbeFailure) -> OriginHealth.Permit? {
        do { return try health?.admit(target) } catch { throw ProbeFailure(error: error) }
    }

    private func settle(_ permit: OriginHealth.Permit?, _ evidence: OriginHealth.Evidence) {
        guard let permit else { return }
        health?.settle(permit, evidence, by: target.settings.circuitBreaker)
    }
}
