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

    @Option(name: .long, help: "Maximum number of entries.")
    var limit = 1000

    @OptionGroup var service: ServiceOptions

    var needs: [String] { ["POST /v1/list"] }

    func validate() throws {
        guard limit > 0 else { throw ValidationError("--limit must be at least 1.") }
    }

    func perform(_ client: ServiceClient) throws {
        var table = TextTable(.leading("path"), .trailing("length"), .leading("changed"))
        var (cursor, rest, skipped, found): (String?, Int, Int, Int) = (nil, limit, 0, 0)
        repeat {
            let request = ServiceRequest(
                .post, "/v1/list",
                body: JSON(present: [
                    "origin": .string(origin), "path": .string(path), "format": format.map { .string($0.rawValue) },
                    "pointer": pointer.map(JSON.string), "limit": .integer(Int64(min(rest, 1000))),
                    "cursor": cursor.map(JSON.string),
                ]))
            let page: APIDocument<ListingDocument> = try client.document(request)
            if service.json { say(page.text) }
            for entry in page.value.items {
                table.add(
                    entry.path, entry.isFolder ? "folder" : entry.bytes.map(FigureText.bytes) ?? "unknown",
                    entry.modifiedAt.map(RFC3339.format) ?? "unknown")
            }
            found += page.value.items.count
            (cursor, rest, skipped) = (page.value.nextCursor, rest - page.value.items.count, page.value.skippedEntries)
        } while cursor != nil && rest > 0
        guard !service.json else { return }
        say(found == 0 ? "The listing is empty." : table.text)
        if cursor != nil { say("There are more entries; raise --limit, which is \(limit).") }
        if skipped > 0 { say("\(skipped) entries lie elsewhere and are left out.") }
    }
}

extension ListingFormat: ExpressibleByArgument {}
