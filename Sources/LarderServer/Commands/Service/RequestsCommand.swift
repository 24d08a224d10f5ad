import ArgumentParser
import CacheAPI
import CacheCore
import CacheEngine

/// The conditions of `larder requests` and `larder tail`.
struct RequestConditions: ParsableArguments {
    @Option(name: .long, help: "Only requests for assets of this origin.")
    var origin: String?

    @Option(name: .long, help: "Only requests for assets with keys that begin so, or for paths that begin so.")
    var prefix: String?

    @Option(name: .customLong("asset"), help: "Only requests for the asset with this identifier.")
    var assetID: String?

    @Option(name: .long, help: "Only requests with the token of this name.")
    var token: String?

    @Option(name: .long, help: "Only responses with this status, such as 404, or of this class, such as 5xx.")
    var status: String?

    @Option(name: .long, help: "Only requests with this result.")
    var result: ReadOutcome.Class?

    @Option(name: .long, help: ArgumentHelp("Only requests that took at least this time.", valueName: "seconds"))
    var minSeconds: Double?

    @Option(name: .long, help: "Only requests of this kind: content, peer or api.")
    var kind: String?

    /// The query parameters of the API.
    var query: [(name: String, value: String?)] {
        [
            ("origin", origin), ("prefix", prefix), ("assetId", assetID), ("token", token), ("status", status),
            ("result", result?.rawValue), ("minSeconds", minSeconds.map { "\($0)" }), ("kind", kind),
        ]
    }
}

/// `larder requests`: lists the last requests to a running service, or shows one.
struct RequestsCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "requests", abstract: "List the last requests to a running service, newest first, or show one.",
        discussion: "The service keeps the last 10,000 requests in memory.")

    @Argument(
        help: ArgumentHelp("Request to show: X-Request-Id of its response, trace or traceparent.", valueName: "request")
    )
    var id: String?

    @OptionGroup var conditions: RequestConditions
    @OptionGroup var options: ListOptions
    @OptionGroup var service: ServiceOptions

    var needs: [String] { ["GET /v1/requests"] }

    var named: NamedObject? { conditions.origin.map { .origin($0) } }

    func perform(_ client: ServiceClient) throws {
        if let id { return try show(id, client) }
        try list("/v1/requests", query: conditions.query, options, client, as: Self.output)
    }

    /// Prints the requests with an identifier or in a trace, newest first.
    private func show(_ id: String, _ client: ServiceClient) throws {
        let parts = id.split(separator: "-")
        // A traceparent has the trace as its second part (W3C Trace Context §3.2).
        let name = parts.count == 4 && parts[0] == "00" ? String(parts[1]) : id
        var isFound = false
        _ = try client.pages("/v1/requests", of: JSON.self, query: conditions.query, limit: .max) { page in
            for item in page.value.items where [item["requestId"], item["traceId"]].contains(.string(name)) {
                let text = try service.json ? item.text : Self.details(client.decoded(item.text.utf8))
                say(isFound && !service.json ? "\n" + text : text)
                isFound = true
            }
        }
        guard isFound else {
            throw ClientError(
                .problem(status: 404, code: "notFound"), "No request of the list has the identifier or trace \(name).",
                remedy: "The service keeps the last 10,000 requests; search older ones in its log.")
        }
    }

    /// Names and values of a request.
    private static func details(_ request: RequestDocument) -> String {
        var table = TextTable()
        table.add("request", "\(request.method) \(request.target)")
        table.add("time", RFC3339.format(request.at))
        table.add(
            "response",
            [String(request.status), request.result, request.code, request.complete ? nil : "aborted"]
                .compactMap(\.self).joined(separator: ", "))
        table.add("first byte", request.firstByteSeconds.map(FigureText.latency) ?? "none")
        table.add("total", FigureText.latency(request.totalSeconds))
        table.add(
            "bytes",
            "\(FigureText.bytes(request.bytes)), \(FigureText.bytes(request.bytesFromCache)) from the cache, "
                + "\(FigureText.bytes(request.bytesFromUpstream)) from the upstream, "
                + "\(FigureText.bytes(request.bytesFromPeers)) from other nodes")
        if let status = request.upstreamStatus { table.add("upstream status", String(status)) }
        if let key = request.key { table.add("asset", key + (request.assetId.map { " (\($0))" } ?? "")) }
        for (name, value) in [
            ("token", request.token), ("client", request.client.value ?? nil), ("identifier", request.requestId),
            ("trace", request.traceId),
        ] {
            if let value { table.add(name, value) }
        }
        return table.text
    }

    private static let output = ListOutput<RequestDocument>(
        noun: "request",
        columns: [
            .leading("time"), .leading("method"), .trailing("status"), .leading("result"), .trailing("bytes"),
            .trailing("upstream"), .trailing("first byte"), .trailing("total"), .leading("token"), .leading("client"),
            .leading("request"),
        ],
        name: \.requestId
    ) { request in
        [
            [
                RFC3339.format(request.at), request.method, String(request.status),
                request.code ?? request.result ?? "", FigureText.bytes(request.bytes),
                FigureText.bytes(request.bytesFromUpstream), request.firstByteSeconds.map(FigureText.latency) ?? "",
                FigureText.latency(request.totalSeconds), request.token ?? "", (request.client.value ?? nil) ?? "",
                request.target,
            ]
        ]
    }
}

/// `larder tail`: prints each request to a running service when it has ended.
struct TailCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "tail", abstract: "Print the requests to a running service as they end, until Ctrl-C.",
        discussion: "At most 1,000 requests per second are printed; the number of the others is one line.")

    @OptionGroup var conditions: RequestConditions

    @OptionGroup var service: ServiceOptions

    var needs: [String] { ["GET /v1/requests", "GET /v1/events"] }

    func perform(_ client: ServiceClient) throws {
        Interruption.catchSignals()
        let query = conditions.query.compactMap { name, value in
            value.map { "&\(name)=\(PercentEncoding.encoded($0))" }
        }
        let request = ServiceRequest.events("/v1/events?topics=requests" + query.joined())
        do {
            try client.follow(
                request,
                onLoss: { error in
                    StandardError.write(PrintableText.of(error.message) + " Trying again.\n")
                }
            ) { event in
                try self.received(event, client)
                return .proceed
            }
        } catch let error as ClientError where error.kind == .interrupted {
            return  // Ctrl-C is the usual end
        }
    }

    private func received(_ event: ServerSentEvent, _ client: ServiceClient) throws {
        guard event.type == "requests" else {
            if event.type == "reset" { StandardError.write("Some requests are missing here.\n") }
            return
        }
        guard !service.json else { return say(event.data) }
        let document: EventDocument = try client.decoded(event.data.utf8)
        if let request = document.request.value {
            say(PrintableText.of(request.line))
        } else if let omitted = document.omitted.value {
            say("… \(FigureText.count(omitted, "more request"))")
        }
    }
}

extension RequestDocument {
    /// The path with the range.
    fileprivate var target: String { path + (range.map { "  (\($0))" } ?? "") }

    /// The line of `larder tail`.
    fileprivate var line: String {
        let times = [firstByteSeconds, totalSeconds].map { $0.map(FigureText.latency) ?? "–" }.joined(separator: "/")
        let from = bytesFromUpstream > 0 ? " (\(FigureText.bytes(bytesFromUpstream)) from the upstream)" : ""
        let names = [token, client.value ?? nil].compactMap(\.self).joined(separator: " ")
        return
            "\(RFC3339.format(at)) \(status) \(code ?? result ?? "–") \(method) \(target) \(FigureText.bytes(bytes))\(from) "
            + "\(times) \(names.isEmpty ? "–" : names)\(complete ? "" : " aborted")"
    }
}

extension ReadOutcome.Class: ExpressibleByArgument {}
