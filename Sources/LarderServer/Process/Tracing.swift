import CacheCore
import CacheTracing
import CurlUpstream
import Foundation
import Logging
import ServiceLifecycle

/// The tracer of the process with the service that sends its spans.
struct Tracing {
    let tracer: Tracer
    /// Nil if tracing is disabled.
    let service: TraceService?

    /// Throws for invalid settings and variables of OpenTelemetry, and if the headers file cannot be read.
    init(_ telemetry: TelemetrySettings, logger: Logger) throws(SettingsError) {
        let settings: TracingSettings
        do throws(TracingSettingsError) {
            var configured = TracingSettings.Configured(
                endpoint: telemetry.endpoint, sampleRatio: telemetry.sampleRatio, timeout: telemetry.timeout)
            if let path = telemetry.headersFile { configured.headers = try Self.headers(in: path) }
            settings = try TracingSettings(
                environment: ProcessInfo.processInfo.environment, configured: configured)
        } catch {
            throw SettingsError(error.key, error.problem)
        }
        for notice in settings.notices { logger.warning("tracing", metadata: ["notice": "\(notice)"]) }
        guard settings.isEnabled else {
            (tracer, service) = (.disabled, nil)
            return
        }
        tracer = Tracer(
            sampler: settings.sampler, random: SystemRandomSource(), wallClock: SystemWallClock(),
            uptime: ContinuousClock().stopwatch())
        let client = CurlWorkerPool(
            settings: .ownRequests(userAgent: "larder/" + LarderCommand.version), clock: ContinuousClock(),
            logger: logger)
        let exporter = OTLPExporter(
            tracer: tracer, settings: settings, version: LarderCommand.version, clock: ContinuousClock(),
            wallClock: SystemWallClock(), random: SystemRandomSource(), logger: logger,
            send: { await Self.send($0, over: client) })
        service = exporter.map { TraceService(exporter: $0, client: client) }
    }

    /// The largest response of a receiver, in bytes; it has a short JSON text.
    private static let responseLimit = 1 << 20

    /// Redirects are not followed, so that credentials stay with the receiver.
    private static func send(_ request: OTLPRequest, over client: any Upstream) async -> OTLPResponse {
        var call = UpstreamRequest(
            method: .post, url: request.endpoint.url, headers: request.headers.exposed,
            timeouts: TransferTimeouts(all: request.timeout))
        call.body = request.body
        call.followsRedirects = false
        call.requiresHTTP1 = { _ in true }
        do throws(CacheError) {
            let response = try await client.exchange(call, bodyLimit: responseLimit)
            return .response(status: response.status, headers: response.headers, body: response.body)
        } catch {
            return .failure("The request failed: \(error.message)")
        }
    }

    private static func headers(in path: String) throws(TracingSettingsError) -> SecretHeaders {
        let key = "telemetry.traces.headersFile"
        guard let bytes = FileManager.default.contents(atPath: path) else {
            throw TracingSettingsError(key, "cannot be read; check the path and the permissions")
        }
        return try SecretHeaders(file: Array(bytes), key: key)
    }
}

/// Sends the recorded spans. It is the last service that is shut down, so that the spans of the others are sent.
struct TraceService: Service {
    let exporter: OTLPExporter
    /// A client apart from that of the upstreams, which ends before the last spans are sent.
    let client: CurlWorkerPool

    func run() async throws {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await exporter.run() }
            // It throws if the task is cancelled; this ends the exporter as well.
            try? await gracefulShutdown()
            exporter.stop()
        }
        await client.shutdownInBackground()
    }
}
