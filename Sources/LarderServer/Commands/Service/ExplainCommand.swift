import ArgumentParser
import CacheAPI
import CacheCore
import Foundation

/// `larder explain`: shows what a read would cost.
struct ExplainCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "explain", abstract: "Show what a read would cost, and why.",
        discussion:
            "The service plans the read as it would for a client. Nothing is fetched, except for a media index if --seconds needs it."
    )

    @Argument(
        help: ArgumentHelp("Asset: a path such as /o/media/film.mp4, a URL or an asset identifier.", valueName: "asset")
    )
    var asset: String

    @Option(name: .long, help: ArgumentHelp("Bytes of the read, such as 0-1048575.", valueName: "range"))
    var range: String?

    @Option(name: .long, help: "First second that a player plays; needs --seconds.")
    var start: Double?

    @Option(name: .long, help: "Number of seconds that a player plays.")
    var seconds: Double?

    @OptionGroup var service: ServiceOptions

    var needs: [String] { ["GET /v1/explain"] }

    var named: NamedObject? { AssetName.origin(of: asset).map { .origin($0) } }

    func validate() throws {
        guard range == nil || seconds == nil else { throw ValidationError("Give either --range or --seconds.") }
        guard start == nil || seconds != nil else { throw ValidationError("--start needs --seconds.") }
    }

    func perform(_ client: ServiceClient) throws {
        let query =
            try AssetName.query(asset, client) + [
                ("range", range.map { $0.contains("=") ? $0 : "bytes=\($0)" }), ("startSeconds", start.map { "\($0)" }),
                ("seconds", seconds.map { "\($0)" }),
            ]
        let read: APIDocument<ExplanationDocument> = try client.document(
            ServiceRequest(.get, "/v1/explain", query: query))
        say(service.json ? read.text : Self.text(read.value))
    }

    /// A table of the parts of an explanation.
    static func text(_ read: ExplanationDocument) -> String {
        var table = TextTable()
        table.add("asset", "\(read.key) (\(read.assetId))")
        let response = read.response
        table.add(
            "response",
            [response.status.map(String.init), response.result, response.code, response.contentRange]
                .compactMap(\.self).joined(separator: ", "))
        table.add("length", read.contentLength.map(FigureText.bytes) ?? "unknown")
        table.add(
            "freshness",
            [
                read.freshness.use, read.freshness.reason,
                read.freshness.freshUntilAt.map { "until \(RFC3339.format($0))" },
            ]
            .compactMap(\.self).joined(separator: ", "))
        table.add(
            "cached", FigureText.bytes(read.cached.bytes) + " in " + FigureText.count(read.cached.extents, "range"))
        table.add("upstream", read.source.url ?? read.source.skipReason ?? "none")
        if !read.source.mirrors.isEmpty { table.add("mirrors", read.source.mirrors.joined(separator: ", ")) }
        if !read.source.peers.isEmpty { table.add("nodes", read.source.peers.joined(separator: ", ")) }
        let requests = read.total?.requests ?? read.fetch.requests
        let bytes = read.total?.bytes ?? read.fetch.bytes
        table.add(
            "fetches",
            (requests.map { FigureText.count($0, "request") } ?? "an unknown number of requests") + ", "
                + (bytes.map(FigureText.bytes) ?? "an unknown number of bytes"))
        for request in read.fetch.items {
            let range = request.range.map { range in
                "bytes \(range.offset)–" + (range.length.map { String(range.offset + $0 - 1) } ?? "end")
            }
            table.add("", [request.kind, range, request.sizedBy].compactMap(\.self).joined(separator: ", "))
        }
        if !read.joinedFills.isEmpty { table.add("joins fills", read.joinedFills.joined(separator: ", ")) }
        if let total = read.total {
            table.add(
                "files",
                "\(total.files), \(FigureText.bytes(total.cachedBytes)) cached, "
                    + FigureText.count(total.errors, "error"))
        }
        return table.text
    }
}

/// The name of an asset on the command line.
enum AssetName {
    /// The query parameters that name it. A URL of this service, or below the base URL of an origin, is a path of the origin.
    static func query(_ text: String, _ client: ServiceClient) throws -> [(name: String, value: String?)] {
        if text.utf8.count == 32, AssetID(text) != nil { return [("assetId", text)] }
        if text.contains("://") { return mounted(text, client) ?? [("url", text)] }
        guard let origin = origin(of: text) else {
            throw ValidationError("\(text) is no asset: give a path such as /o/media/film.mp4, a URL or an identifier.")
        }
        return [("origin", origin), ("path", String(text.dropFirst("/o/\(origin)/".count)))]
    }

    /// The origin and the path of a URL; nil: it belongs to no origin, or the token cannot read the origins.
    private static func mounted(_ url: String, _ client: ServiceClient) -> [(name: String, value: String?)]? {
        let content = client.address.url + "/o/"
        if url.hasPrefix(content), let origin = origin(of: "/o/" + url.dropFirst(content.count)) {
            return [("origin", origin), ("path", String(url.dropFirst(content.count + origin.count + 1)))]
        }
        // Without the origins the service decides about the URL.
        let page: APIDocument<PageDocument<JSON>>? = try? client.document(ServiceRequest(.get, "/v1/origins"))
        let bases = page?.value.items.compactMap { origin -> (name: String, url: String)? in
            guard let name = origin["name"]?.string, var base = origin["baseURL"]?.string else { return nil }
            if base.last != "/" { base += "/" }
            return url.hasPrefix(base) ? (name, base) : nil
        }
        return bases?.max { $0.url.count < $1.url.count }.map { base in
            [("origin", base.name), ("path", String(url.dropFirst(base.url.count)))]
        }
    }

    /// The origin of a path such as `/o/media/film.mp4`; nil for other names.
    static func origin(of text: String) -> String? {
        let parts = text.split(separator: "/", maxSplits: 2, omittingEmptySubsequences: true)
        return text.hasPrefix("/o/") && parts.count == 3 ? String(parts[1]) : nil
    }
}
