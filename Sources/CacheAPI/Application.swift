package import CacheCore
package import CacheEngine
import HTTPTypes
package import Logging
import ReaderAccess
import ServiceLifecycle

/// Makes the HTTP server for `cache`, to run in a service group or in tests.
///
/// - Parameters:
///   - live: The settings that can change; nil: those of `settings`, which never change.
///   - source: The configuration for `/v1/configuration`.
///   - onRunning: Called when the server listens on all its addresses.
/// - Throws: `.invalidField` if the certificate files are unusable.
package func makeApplication(
    cache: AssetCache, settings: APISettings, live: LiveAPISettings? = nil,
    source: any ConfigurationSource = FixedConfiguration(), random: any RandomSource, clock: any Clock<Duration>,
    wallClock: any WallClock, logger: Logger,
    onRunning: @escaping @Sendable (BoundAddresses) async -> Void = { _ in }
) throws(CacheError) -> HTTPService {
    let live = live ?? LiveAPISettings(settings)
    let load = AdmissionLimits(live, clock: clock)
    let history = RequestHistory(events: cache.events)
    let failures = FailureLog(logger: logger, clock: clock)
    let processor = RequestProcessor(
        gate: Authorizer(live, wallClock: wallClock, isEncrypted: settings.tls != nil), random: random, clock: clock,
        recorder: RequestRecorder(
            log: settings.accessLog ?? AccessLog(logger), latencies: cache.statistics.requestLatencies,
            history: history, failures: failures, readers: ReaderFigures(named: settings.labelledTokens)),
        tracing: RequestTracing(tracer: cache.tracer))
    cache.webhooks.encode { WebhookData.json(of: $0) }
    let feed = EventFeed(log: cache.events, clock: clock, requests: history)
    cache.schedules.begin(with: JobSchedules.Rights(live, wallClock: wallClock))
    let router = makeRouter(
        cache: cache, settings: settings, live: live, source: source, processor: processor, load: load, feed: feed,
        logger: logger)
    var certificates: CertificateReloader?
    if let tls = settings.tls { certificates = try CertificateReloader(tls, clock: clock, logger: logger) }
    let content = ContentResponder(
        reader: cache.reader, processor: processor, limits: ReaderLimits(assets: cache.assets), permits: load.reads,
        isFastPathEnabled: settings.isFastPathEnabled, sendsFiles: certificates == nil)
    let (responseCaches, sendBufferBudget) = (PreparedResponseCaches(random: random), SendBufferBudget.ofThisMachine())
    let pacing = CongestionControl.ofThisMachine()
    let connection = HTTPServerChannel(
        api: APIResponder(processor: processor, router: router, live: live, logger: logger), live: live,
        certificates: certificates,
        wallClock: wallClock, random: random, content: content, responseCaches: responseCaches,
        connections: load.connections, addresses: load.addresses, clientAddresses: settings.clientAddresses,
        sendBufferBudget: sendBufferBudget, pacing: pacing, rates: ReaderRates(), logger: logger)
    let accepting = Accepting(load.connections, clock: clock)
    let listener = ListenerService(
        listener: settings.listener, logger: logger,
        makeServer: { endpoint, onBound in
            SocketServer(endpoint: endpoint, connection: connection, acceptLimit: load.connections.acceptLimit) {
                await pacing.spare($0)
                await onBound($0)
            }
        },
        onRunning: {
            accepting.began(on: $0)
            await onRunning(BoundAddresses($0, scheme: settings.tls == nil ? "http" : "https"))
        })
    // Services end in reverse order: first the feed, with all streams of events, which the listener waits for.
    let services: [any Service] = (certificates.map { [$0] } ?? []) + [failures, listener, feed]
    return HTTPService(
        services: ServiceGroup(configuration: .init(services: services, logger: logger)), accepting: accepting)
}

/// Makes the router with all routes of ``RouteTable`` but those of content.
func makeRouter(
    cache: AssetCache, settings: APISettings, live: LiveAPISettings, source: any ConfigurationSource,
    processor: RequestProcessor, load: AdmissionLimits, feed: EventFeed, logger: Logger
) -> Router {
    var router = Router()
    let (gate, clock, wallClock) = (processor.gate, processor.clock, processor.gate.wallClock)
    let limits = ReaderLimits(assets: cache.assets)
    let budgets = ClientBudgets(live, addresses: load.addresses, feed: feed)
    router.mount(ProbeController(prober: cache.prober, live: live, readers: limits), gate, limits, budgets)
    router.mount(ListingController(lister: cache.lister, live: live, readers: limits), gate, limits, budgets)
    router.mount(AssetController(cache: cache, live: live, clock: clock), gate, limits, budgets)
    router.mount(
        FillController(
            fills: cache.fills, reader: cache.reader, media: cache.media, statistics: cache.statistics,
            readers: limits), gate, limits, budgets)
    router.mount(JobController(jobs: cache.jobs, live: live, readers: limits, clock: clock), gate, limits, budgets)
    router.mount(
        ScheduleController(schedules: cache.schedules, jobs: cache.jobs, live: live, wallClock: wallClock), gate,
        limits,
        budgets)
    router.mount(
        StatsController(
            cache: cache, load: load, recorder: processor.recorder, source: source, version: settings.version),
        gate,
        limits, budgets)
    let tickets = EventTickets(random: processor.random, uptime: clock.stopwatch(), wallClock: wallClock)
    let history = processor.recorder.history
    router.mount(EventController(events: cache.events, history: history, tickets: tickets), gate, limits, budgets)
    router.mount(RequestController(history: history, events: cache.events), gate, limits, budgets)
    router.mount(PolicyController(cache: cache, live: live), gate, limits, budgets)
    router.mount(EvictionController(cache: cache, live: live, readers: limits, clock: clock), gate, limits, budgets)
    router.mount(ScrubController(scrubber: cache.scrubber, live: live), gate, limits, budgets)
    router.mount(EncryptionController(encryption: cache.encryption), gate, limits, budgets)
    router.mount(FleetController(cache: cache, live: live, clock: clock), gate, limits, budgets)
    router.mount(OriginController(cache: cache, live: live), gate, limits, budgets)
    router.mount(ServiceController(cache: cache, settings: settings, live: live), gate, limits, budgets)
    router.mount(AccessController(), gate, limits, budgets)
    router.mount(
        TokenController(
            cache: cache, live: live, random: processor.random, wallClock: wallClock, logger: logger), gate, limits,
        budgets)
    router.mount(WebhookController(webhooks: cache.webhooks), gate, limits, budgets)
    router.mount(ConfigurationController(source: source), gate, limits, budgets)
    router.mount(SignatureController(live: live, content: cache.reader, wallClock: wallClock), gate, limits, budgets)
    router.mount(DashboardController(files: settings.dashboard), gate, limits, budgets)
    return router
}

extension Router {
    /// Adds the routes of a controller. Each GET route answers HEAD too, unless the controller has a HEAD route for the
    /// same pattern.
    ///
    /// A request is authorized before its query and its body are read. The body is charged to its reader until the
    /// response begins.
    fileprivate mutating func mount<Calls: Controller>(
        _ controller: Calls, _ gate: Authorizer, _ limits: ReaderLimits, _ budgets: ClientBudgets
    ) {
        let methods = Set(Calls.routes.filter { $0.line.method == .head }.map(\.line.pattern))
        for route in Calls.routes {
            let (line, readsQuery, respond) = (route.line, route.readsQuery, route.respond)
            let answer: Respond = { request, context in
                let reader = try gate.admit(request, line.need)
                var context = context
                context.permission = StreamPermission(
                    gate: gate, need: line.need, credentials: request.call.credentials, host: request.call.host,
                    reader: reader)
                if let reader {
                    context.logContext.update { $0.reader = reader }
                    try await limits.check(line, context, for: reader)
                }
                let claim = budgets.bodies.claim(for: reader)
                defer { claim.giveBack() }
                (context.budgets, context.bodyClaim) = (budgets, claim)
                var request = request
                request.body.claim = claim
                if reader != nil { request.body.permission = context.permission }
                if !readsQuery { _ = try request.query(accepting: []) }
                // Health checks need no other thread, and must be answered while all are busy.
                if ConnectionPermits.isHealthCheck(line.pattern) {
                    return try await respond(controller, request, context)
                }
                // Requests may compute for long: not on the event loop of the connection.
                return try await withTaskExecutorPreference(globalConcurrentExecutor) { [context, request] in
                    try await respond(controller, request, context)
                }
            }
            add(line, method: line.method, answer)
            if line.method == .get, !methods.contains(line.pattern) { add(line, method: .head, answer) }
        }
    }
}
