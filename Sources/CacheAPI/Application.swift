package import CacheCore
package import CacheEngine
package import Hummingbird
package import Logging
import HummingbirdCore

/// The HTTP service over `cache`, for a service group, or for tests of its routes.
///
/// Throws `.invalidField` where the certificate files cannot be used.
package func makeApplication(
    cache: AssetCache, settings: APISettings, chance: any Chance, clock: any Clock<Duration>,
    wallClock: any WallClock, logger: Logger,
    onRunning: @escaping @Sendable (_ port: Int?) async -> Void = { _ in }
) throws(CacheError) -> some ApplicationProtocol {
    let load = CounterLoad(settings.limits)
    let router = makeRouter(cache: cache, settings: settings, load: load, chance: chance, clock: clock, logger: logger)
    var certificates: CertificateShelf?
    if let tls = settings.tls { certificates = try CertificateShelf(tls, clock: clock, logger: logger) }
    let shelf = certificates
    let express = ExpressDesk(
        cache: cache, gate: Gate(access: settings.access, cors: settings.cors), urlBytes: settings.limits.urlBytes,
        chance: chance, clock: clock, logger: logger)
    let (books, sendRoom) = (RepriseBooks(chance: chance), SendRoom.ofThisMachine())
    let pacing = KernelPacing.ofThisMachine()
    return Application(
        router: router,
        server: HTTPServerBuilder { responder in
            CounterChannel(
                responder: responder, limits: settings.limits, certificates: shelf, wallClock: wallClock,
                chance: chance, express: settings.isExpress ? express : nil, books: books,
                connections: load.connections, sendRoom: sendRoom, pacing: pacing)
        },
        configuration: ApplicationConfiguration(
            address: .hostname(settings.host, port: settings.port), backlog: 4096,
            // Connections beyond the rejected ones wait to be accepted.
            availableConnectionsDelegate: MaximumAvailableConnections(load.connections.acceptLimit, logger: logger)),
        services: certificates.map { [$0] } ?? [],
        onServerRunning: {
            await pacing.spare($0)
            await onRunning($0.localAddress?.port)
        },
        logger: logger)
}

/// The router with every call of ``RouteTable``.
func makeRouter(
    cache: AssetCache, settings: APISettings, load: CounterLoad, chance: any Chance, clock: any Clock<Duration>,
    logger: Logger
) -> Router<APIContext> {
    let router = Router(context: APIContext.self)
    router.add(
        middleware: Envelope(settings: settings, routes: RouteTable(), chance: chance, clock: clock, logger: logger))
    let (gate, limits) = (Gate(access: settings.access, cors: settings.cors), settings.limits)
    router.mount(ContentController(cache: cache, gate: gate, places: load.reads), gate)
    router.mount(ProbeController(cache: cache, limits: limits), gate)
    router.mount(AssetController(cache: cache, limits: limits), gate)
    router.mount(FillController(cache: cache), gate)
    router.mount(JobController(cache: cache, limits: limits, clock: clock), gate)
    router.mount(StatsController(cache: cache, load: load, version: settings.version), gate)
    router.mount(PolicyController(cache: cache, limits: limits), gate)
    router.mount(EvictionController(cache: cache, limits: limits), gate)
    router.mount(ScrubController(cache: cache, limits: limits), gate)
    router.mount(OriginController(cache: cache, limits: limits), gate)
    router.mount(ServiceController(cache: cache, settings: settings), gate)
    return router
}

extension Router<APIContext> {
    /// Adds a controller's calls; each GET is a HEAD too.
    fileprivate func mount<Calls: Controller>(_ controller: Calls, _ gate: Gate) {
        let methods = Set(Calls.routes.filter { $0.line.method == .head }.map(\.line.pattern))
        for route in Calls.routes {
            let (line, readsQuery, respond) = (route.line, route.readsQuery, route.respond)
            let answer: @Sendable (Request, APIContext) async throws -> Response = { request, context in
                try gate.admit(request, line.need)
                if !readsQuery { _ = try request.query(accepting: []) }
                return try await respond(controller, request, context)
            }
            on(line.routerPath, method: line.method, use: answer)
            if line.method == .get, !methods.contains(line.pattern) {
                on(line.routerPath, method: .head, use: answer)
            }
        }
    }
}
