package import CacheCore
package import CacheEngine
import Hummingbird
package import Logging
import HummingbirdCore
import NIOCore
import NIOHTTP1
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
    let recorder = RequestRecorder(
        log: settings.accessLog ?? AccessLog(logger), latencies: cache.statistics.requestLatencies)
    let feed = EventFeed(log: cache.events, clock: clock)
    let router =
        makeRouter(
            cache: cache, settings: settings, live: live, source: source, recorder: recorder, load: load, feed: feed,
            random: random, clock: clock, wallClock: wallClock, logger: logger)
    var certificates: CertificateReloader?
    if let tls = settings.tls { certificates = try CertificateReloader(tls, clock: clock, logger: logger) }
    let content = ContentResponder(
        reader: cache.reader, gate: Authorizer(live, wallClock: wallClock, isEncrypted: settings.tls != nil),
        limits: ReaderLimits(assets: cache.assets), permits: load.reads,
        isFastPathEnabled: settings.isFastPathEnabled, sendsFiles: certificates == nil, random: random, clock: clock,
        recorder: recorder, tracing: RequestTracing(tracer: cache.tracer))
    let (responseCaches, sendBufferBudget) = (PreparedResponseCaches(random: random), SendBufferBudget.ofThisMachine())
    let pacing = CongestionControl.ofThisMachine()
    var serverLogger = logger
    serverLogger.logLevel = max(logger.logLevel, .notice)  // without the libraries' own messages
    let connection = HTTPServerChannel(
        responder: makeResponder(SignedTargetResponder(router.buildResponder(), live), wallClock, serverLogger),
        live: live, certificates: certificates, wallClock: wallClock, random: random, content: content,
        responseCaches: responseCaches, connections: load.connections, addresses: load.addresses,
        clientAddresses: settings.clientAddresses, sendBufferBudget: sendBufferBudget, pacing: pacing,
        rates: ReaderRates(), logger: logger)
    let accepting = Accepting(load.connections, clock: clock)
    let listener = ListenerService(
        listener: settings.listener, logger: logger,
        makeServer: { [serverLogger] endpoint, onBound in
            SocketServer(
                endpoint: endpoint, connection: connection, acceptLimit: load.connections.acceptLimit,
                logger: serverLogger
            ) {
                await pacing.spare($0)
                await onBound($0)
            }
        },
        onRunning: {
            accepting.began(on: $0)
            await onRunning(BoundAddresses($0, scheme: settings.tls == nil ? "http" : "https"))
        })
    let services: [any Service] = [feed] + (certificates.map { [$0] } ?? []) + [listener]
    return HTTPService(
        services: ServiceGroup(configuration: .init(services: services, logger: logger)), accepting: accepting)
}

/// The handler of all requests but those of content.
private func makeResponder(
    _ responder: some HTTPResponder<APIContext>, _ wallClock: any WallClock, _ logger: Logger
) -> HTTPChannelHandler.Responder {
    { request, writer, channel in
        let source = ApplicationRequestContextSource(channel: channel, logger: logger)
        var response = try await responder.respond(to: request, context: APIContext(source: source))
        response.headers[.date] = HTTPDate.format(wallClock.now())
        do {
            try await writer.write(response: response.head, body: response.body)
        } catch is HTTPParserError {
            throw ChannelError.inputClosed  // Hummingbird answers a parser error with a second response
        }
    }
}

/// Makes the router with all routes of ``RouteTable`` but those of content, behind ``RequestMiddleware``.
func makeRouter(
    cache: AssetCache, settings: APISettings, live: LiveAPISettings, source: any ConfigurationSource,
    recorder: RequestRecorder, load: AdmissionLimits, feed: EventFeed, random: any RandomSource,
    clock: any Clock<Duration>, wallClock: any WallClock, logger: Logger
) -> Router<APIContext> {
    let router = Router(context: APIContext.self)
    router.add(
        middleware: RequestMiddleware(
            live: live, recorder: recorder, tracing: RequestTracing(tracer: cache.tracer), routes: RouteTable(),
            random: random, clock: clock, logger: logger))
    let gate = Authorizer(live, wallClock: wallClock, isEncrypted: settings.tls != nil)
    let limits = ReaderLimits(assets: cache.assets)
    let budgets = ClientBudgets(live, addresses: load.addresses, feed: feed)
    router.mount(ProbeController(prober: cache.prober, live: live, readers: limits), gate, limits, budgets)
    router.mount(AssetController(cache: cache, live: live, clock: clock), gate, limits, budgets)
    router.mount(
        FillController(
            fills: cache.fills, reader: cache.reader, media: cache.media, statistics: cache.statistics,
            readers: limits), gate, limits, budgets)
    router.mount(JobController(jobs: cache.jobs, live: live, readers: limits, clock: clock), gate, limits, budgets)
    router.mount(
        StatsController(
            cache: cache, load: load, readers: recorder.readers, source: source, version: settings.version), gate,
        limits, budgets)
    let tickets = EventTickets(random: random, uptime: clock.stopwatch(), wallClock: wallClock)
    router.mount(EventController(events: cache.events, tickets: tickets), gate, limits, budgets)
    router.mount(PolicyController(cache: cache, live: live), gate, limits, budgets)
    router.mount(EvictionController(cache: cache, live: live, readers: limits, clock: clock), gate, limits, budgets)
    router.mount(ScrubController(scrubber: cache.scrubber, live: live), gate, limits, budgets)
    router.mount(EncryptionController(encryption: cache.encryption), gate, limits, budgets)
    router.mount(FleetController(cache: cache, live: live, clock: clock), gate, limits, budgets)
    router.mount(OriginController(cache: cache, live: live), gate, limits, budgets)
    router.mount(ServiceController(cache: cache, settings: settings, live: live), gate, limits, budgets)
    router.mount(AccessController(), gate, limits, budgets)
    router.mount(ConfigurationController(source: source), gate, limits, budgets)
    router.mount(SignatureController(live: live, content: cache.reader, wallClock: wallClock), gate, limits, budgets)
    router.mount(DashboardController(files: settings.dashboard), gate, limits, budgets)
    return router
}

extension Router<APIContext> {
    /// Adds the routes of a controller. Each GET route answers HEAD too, unless the controller has a HEAD route for the
    /// same pattern.
    ///
    /// A request is authorized before its query and its body are read. The body is charged to its reader until the
    /// response begins.
    fileprivate func mount<Calls: Controller>(
        _ controller: Calls, _ gate: Authorizer, _ limits: ReaderLimits, _ budgets: ClientBudgets
    ) {
        let methods = Set(Calls.routes.filter { $0.line.method == .head }.map(\.line.pattern))
        for route in Calls.routes {
            let (line, readsQuery, respond) = (route.line, route.readsQuery, route.respond)
            let answer: @Sendable (Request, APIContext) async throws -> Response = { request, context in
                let reader = try gate.admit(request, line.need, context.credentials)
                var context = context
                context.permission = StreamPermission(
                    gate: gate, need: line.need, credentials: context.credentials, host: request.head.authority,
                    reader: reader)
                if let reader {
                    context.note.update { $0.reader = reader }
                    try await limits.check(line, context, for: reader)
                }
                let claim = budgets.bodies.claim(for: reader)
                defer { claim.giveBack() }
                (context.budgets, context.bodyClaim) = (budgets, claim)
                var request = request
                if line.method != .get {
                    request.body = RequestBody(asyncSequence: ChargedBody(base: request.body, claim: claim))
                }
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
            on(line.routerPath, method: line.method, use: answer)
            if line.method == .get, !methods.contains(line.pattern) {
                on(line.routerPath, method: .head, use: answer)
            }
        }
    }
}
