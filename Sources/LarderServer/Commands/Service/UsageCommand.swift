import ArgumentParser
import CacheAPI
import CacheCore

/// `larder du`: shows what the cache is used for.
struct UsageCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "du", abstract: "Show the usage of the cache by origin, directory, tag, media type or age.",
        discussion: """
            Without arguments the origins are listed, with a directory such as /o/media/ the directories in it. The numbers are \
            kept by the service, so that they cost no search of the cache.
            """)

    @Argument(help: ArgumentHelp("Directory of keys, with a slash at its end.", valueName: "/o/…"))
    var prefix: String?

    @Option(name: .long, help: "Grouping: origin, path, tag, type or age.")
    var by: UsageGroup?

    @Option(name: [.customShort("d"), .long], help: "Levels of directories below the prefix.")
    var depth: Int?

    @OptionGroup var options: ListOptions
    @OptionGroup var service: ServiceOptions

    var needs: [String] { ["GET /v1/assets/usage"] }

    func validate() throws {
        guard options.limit <= 1000 else { throw ValidationError("--limit must be at most 1000.") }
    }

    func perform(_ client: ServiceClient) throws {
        let group = by ?? (prefix == nil && depth == nil ? .origin : .path)
        let usage: APIDocument<UsageDocument> = try client.document(
            ServiceRequest(
                .get, "/v1/assets/usage",
                query: [
                    ("by", group.rawValue), ("prefix", prefix), ("depth", depth.map(String.init)),
                    ("limit", "\(options.limit)"),
                ]))
        guard !service.json else { return say(usage.text) }
        guard !options.quiet else { return usage.value.items.forEach { say(PrintableText.of($0.name)) } }
        var table = TextTable(.trailing("bytes"), .trailing("share"), .trailing("assets"), .leading(group.rawValue))
        let total = usage.value.total
        for item in usage.value.items {
            let share = FigureText.share(total.bytes > 0 ? Double(item.bytes) / Double(total.bytes) : nil)
            table.add(
                FigureText.bytes(item.bytes), share, "\(item.assets)",
                item.name.isEmpty ? "none" : item.name)
        }
        table.add(FigureText.bytes(total.bytes), "", "\(total.assets)", "total")
        say(table.text)
    }
}

extension UsageGroup: ExpressibleByArgument {}
