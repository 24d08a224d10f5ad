import ArgumentParser
import CacheAPI
import CacheCore

/// Options of all commands that print a list.
struct ListOptions: ParsableArguments {
    @Option(name: [.customShort("n"), .long], help: "Maximum number of entries.")
    var limit = 100

    @Flag(name: .shortAndLong, help: "Print only the names, one per line.")
    var quiet = false

    func validate() throws {
        guard limit > 0 else { throw ValidationError("--limit must be at least 1.") }
    }
}

/// A list of the API as a table.
struct ListOutput<Item: Decodable>: Sendable {
    /// The name of an item in messages, in the singular.
    let noun: String
    let columns: [TextTable.Column]
    /// The name of an item for other commands.
    let name: @Sendable (Item) -> String
    /// The rows of an item.
    let rows: @Sendable (Item) -> [[String]]
}

extension ClientCommand {
    /// Prints a list while it is read: the documents, the names or a table.
    ///
    /// - Parameter isPaged: Whether the API divides the list into pages.
    func list<Item>(
        _ path: String, query: [(name: String, value: String?)] = [], isPaged: Bool = true, _ options: ListOptions,
        _ client: ServiceClient, as output: ListOutput<Item>
    ) throws {
        var table = TextTable(output.columns)
        var left = options.limit
        func show(_ page: APIDocument<PageDocument<Item>>) {
            guard !service.json else { return say(page.text) }
            for item in page.value.items.prefix(left) {
                if options.quiet {
                    say(PrintableText.of(output.name(item)))
                } else {
                    output.rows(item).forEach { table.add($0) }
                }
            }
            left -= page.value.items.count
            if let lines = table.takeLines() { say(lines) }
        }
        var hasMore = false
        if isPaged {
            hasMore = try client.pages(path, of: Item.self, query: query, limit: options.limit, onPage: show)
        } else {
            show(try client.document(ServiceRequest(.get, path, query: query)))
            hasMore = left < 0
        }
        guard !service.json, !options.quiet else { return }
        if left == options.limit {
            say("No \(output.noun)s match.")
            if let suggestion = named?.suggestion(client) { StandardError.write(suggestion + "\n") }
        }
        if hasMore { say("More \(output.noun)s match; raise --limit, which is \(options.limit).") }
    }
}
