import ArgumentParser
import CacheAPI
import CacheCore

/// `larder list`: lists the files of an upstream.
struct ListCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List the files of an upstream.",
        discussion: """
            The service asks the upstream of an origin for a folder, or for a document that names files. Nothing is cached.
            """)

    @Argument(help: "The name of the origin.")
    var origin: String

    @Argument(help: "The folder, with a slash at its end, or the document.")
    var path = ""

    @Option(name: .long, help: "The format; without it the text of the response decides.")
    var format: ListingFormat?

    @Option(name: .long, help: "The JSON pointer to the array of a JSON document.")
    var pointer: String?

    @OptionGroup var options: ListOptions
    @OptionGroup var service: ServiceOptions

    var needs: [String] { ["POST /v1/list"] }

    var named: NamedObject? { .origin(origin) }

    func perform(_ client: ServiceClient) throws {
        var table = TextTable(.leading("path"), .trailing("length"), .leading("changed"))
        var (cursor, rest, skipped): (String?, Int, Int) = (nil, options.limit, 0)
        repeat {
            let request = ServiceRequest(
                .post, "/v1/list",
                body: JSON(present: [
                    "origin": .string(origin), "path": .string(path), "format": format.map { .string($0.rawValue) },
                    "pointer": pointer.map(JSON.string), "limit": .integer(Int64(min(rest, 1000))),
                    "cursor": cursor.map(JSON.string),
                ]))
            let page: APIDocument<ListingDocument> = try client.document(request)
            show(page, in: &table)
            (cursor, rest, skipped) = (page.value.nextCursor, rest - page.value.items.count, page.value.skippedEntries)
        } while cursor != nil && rest > 0
        guard !service.json, !options.quiet else { return }
        if rest == options.limit { say("The listing is empty.") }
        if cursor != nil { say("There are more entries; raise --limit, which is \(options.limit).") }
        if skipped > 0 { say("\(skipped) entries lie elsewhere and are left out.") }
    }

    private func show(_ page: APIDocument<ListingDocument>, in table: inout TextTable) {
        guard !service.json else { return say(page.text) }
        for entry in page.value.items {
            guard !options.quiet else {
                say(PrintableText.of(entry.path))
                continue
            }
            table.add(
                entry.path, entry.isFolder ? "folder" : entry.bytes.map(FigureText.bytes) ?? "unknown",
                entry.modifiedAt.map(RFC3339.format) ?? "unknown")
        }
        if let lines = table.takeLines() { say(lines) }
    }
}

extension ListingFormat: ExpressibleByArgument {}
