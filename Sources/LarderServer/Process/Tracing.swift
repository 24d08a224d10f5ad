import CacheCore
import CacheTracing
import Foundation
import Logging

/// The tracer of the process with its exporter.
struct Tracing {
    let tracer: Tracer
    /// Nil if tracing is disabled.
    let exporter: OTLPExporter?

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
        guard settings.isEnabled, let transport = OTLPTransport() else {
            (tracer, exporter) = (.disabled, nil)
            return
        }
        tracer = Tracer(
            sampler: settings.sampler, random: SystemRandomSource(), wallClock: SystemWallClock(),
            uptime: ContinuousClock().stopwatch())
        exporter = OTLPExporter(
            tracer: tracer, settings: settings, version: LarderCommand.version, clock: ContinuousClock(),
            wallClock: SystemWallClock(), random: SystemRandomSource(), logger: logger, send: transport.send)
    }

    private static func headers(in path: String) throws(TracingSettingsError) -> SecretHeaders {
        let key = "telemetry.traces.headersFile"
        guard let bytes = FileManager.default.contents(atPath: path) else {
            throw TracingSettingsError(key, "cannot be read; check the path and the permissions")
        }
        return try SecretHeaders(file: Array(bytes), key: key)
    }
}
