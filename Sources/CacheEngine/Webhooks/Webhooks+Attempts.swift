import CacheCore
import CacheStore
import DequeModule
import Logging

/// Requests to the receivers.
extension Webhooks {
    /// The largest response that is read; the content of responses has no effect.
    private static let responseLimit = 16 << 10
    /// The time between two rounds of requests with events that the catalog refuses.
    private static let pendingPause = Duration.seconds(5)

    /// Makes one attempt to deliver an event, and records its outcome.
    func attempt(_ delivery: WebhookDelivery, to settings: WebhookSettings) async {
        let name = delivery.webhook
        guard let outcome = await send(delivery, to: settings) else {
            // Cancelled: the next process repeats the attempt.
            state.withLock { $0.endpoints[name]?.close(delivery.sequence, until: delivery.nextAttemptAt) }
            return
        }
        let (now, uptime, random) = (wallClock.now(), uptime(), random.uniform())
        let (ended, report) = state.withLock { state in
            let wasFailing = (state.endpoints[name]?.failuresInARow ?? 0) > 0
            let ended = state.endpoints[name]?.end(delivery, outcome, at: uptime, now, random: random)
            let isFailing = (state.endpoints[name]?.failuresInARow ?? 0) > 0
            return (ended, wasFailing == isFailing ? nil : state.endpoints[name]?.figures.lastError ?? "")
        }
        log(report, of: name)
        // Without the webhook, its events are deleted.
        guard let ended else { return }
        do throws(CacheError) {
            switch ended.step {
            case .remove:
                try await catalog.removeDeliveries([delivery.sequence])
                if ended.isBack { try await catalog.hasten(name, to: now) }
                state.withLock { $0.endpoints[name]?.close(delivery.sequence, until: ended.isBack ? now : nil) }
            case .postpone(let attempts, let time):
                try await catalog.postpone(delivery.sequence, attempts: attempts, until: time)
                state.withLock { $0.endpoints[name]?.close(delivery.sequence, until: time) }
            }
        } catch {
            failed(error)
            let isRemoved = if case .remove = ended.step { false } else { true }
            state.withLock { $0.endpoints[name]?.close(delivery.sequence, isRemoved: isRemoved, until: now) }
        }
    }

    /// Sends the events that the catalog refuses, because one of them can state that the disk is full. One round at a time.
    func sendPending(in group: inout DiscardingTaskGroup) {
        let uptime = uptime()
        let pending = state.withLock { state -> [Pending] in
            guard !state.isSendingPending, uptime >= state.pendingRestUntil, !state.pending.isEmpty else { return [] }
            state.isSendingPending = true
            return Array(state.pending.prefix(WebhookEndpoint.concurrency))
        }
        guard !pending.isEmpty else { return }
        group.addTask {
            for event in pending {
                for delivery in self.deliveries(of: event) { await self.sendUnsaved(delivery) }
            }
            let rest = self.uptime() + Self.pendingPause
            self.state.withLock { state in
                state.isSendingPending = false
                state.pendingRestUntil = rest
                state.pending.removeAll(where: \.receivers.isEmpty)
            }
        }
    }

    /// Makes one attempt with an event that the catalog does not have.
    private func sendUnsaved(_ delivery: WebhookDelivery) async {
        let name = delivery.webhook
        guard let endpoint = state.withLock({ $0.endpoints[name] }), !endpoint.isGone,
            let outcome = await send(delivery, to: endpoint.settings)
        else { return }
        let (now, uptime, random) = (wallClock.now(), uptime(), random.uniform())
        state.withLock { state in
            _ = state.endpoints[name]?.note(outcome, at: uptime, now, random: random)
            guard case .delivered = outcome,
                let index = state.pending.firstIndex(where: { $0.message == delivery.message })
            else { return }
            state.pending[index].receivers.removeAll { $0 == name }
        }
    }

    /// Sends one request. Nil if the task was cancelled.
    private func send(_ delivery: WebhookDelivery, to settings: WebhookSettings) async -> WebhookOutcome? {
        var request = UpstreamRequest(
            method: .post, url: settings.url,
            headers: settings.keys.fields(of: delivery.payload, message: delivery.message, at: wallClock.now()),
            originName: "(webhook) " + settings.name, timeouts: TransferTimeouts(all: settings.timeout),
            maxTransfers: WebhookEndpoint.concurrency, allowPrivateAddresses: settings.allowsPrivateAddresses,
            tls: settings.tls)
        request.body = Array(delivery.payload.utf8)
        request.followsRedirects = false
        let outcome = await upstream.outcome(of: request, bodyLimit: Self.responseLimit)
        guard let head = outcome.head else {
            let error = outcome.missingResponse
            return Task.isCancelled || error.code == .cancelled || error.code == .shuttingDown ? nil : .failed(error)
        }
        // The head states that the receiver has the event, whatever happens to the body.
        if (200...299).contains(head.status) { return .delivered(status: head.status) }
        return .refused(status: head.status, wish: RetryAfter.wait(in: head.headers, now: wallClock.now()))
    }

    /// Logs that a receiver fails or is back. `report`: its error, or an empty text; nil: neither.
    private func log(_ report: String?, of name: String) {
        guard let report else { return }
        if report.isEmpty {
            logger.notice("a webhook delivers again", metadata: ["webhook": "\(name)"])
        } else {
            logger.warning("a webhook fails", metadata: ["webhook": "\(name)", "error": "\(report)"])
        }
    }
}
