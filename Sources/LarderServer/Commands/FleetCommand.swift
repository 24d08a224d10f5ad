import ArgumentParser
import CacheAPI
import CacheCore

/// `larder fleet`: the nodes of a fleet, and the departure of one.
struct FleetCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "fleet", abstract: "Show the nodes of a fleet, and take one out of it.",
        subcommands: [FleetStatusCommand.self, FleetLeaveCommand.self, FleetJoinCommand.self])
}

/// `larder fleet status`: the nodes as the service sees them.
struct FleetStatusCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "status", abstract: "Show the nodes of the fleet and how far each has applied its state.")

    @OptionGroup var service: ServiceOptions

    var needs: [String] { ["GET /v1/fleet"] }

    func perform(_ client: ServiceClient) throws {
        let fleet: APIDocument<FleetDocument> = try client.document(ServiceRequest(.get, "/v1/fleet"))
        say(service.json ? fleet.text : Self.text(fleet.value))
    }

    /// The nodes of etcd, if there is one; the results of requests to other nodes; and what is wrong.
    static func text(_ fleet: FleetDocument) -> String {
        var lines: [String] = []
        if let etcd = fleet.etcd.value {
            var table = TextTable(
                .leading("node"), .leading("state"), .trailing("purges"), .trailing("used"), .trailing("capacity"),
                .leading("version"), .leading("url"))
            for node in etcd.nodes {
                table.add(
                    node.name == etcd.name ? "\(node.name) (this)" : node.name, node.state,
                    node.purges < etcd.purges ? "\(node.purges) of \(etcd.purges)" : FigureText.count(node.purges),
                    FigureText.bytes(node.usedBytes), node.capacityBytes.map(FigureText.bytes) ?? "no limit",
                    node.version,
                    node.url ?? "")
            }
            lines.append(table.text)
            if let error = etcd.lastError { lines.append("The state in etcd is not read: \(error)") }
            if let fault = etcd.fault { lines.append("This node is not ready: \(fault)") }
            lines += etcd.origins.map { "The origin \($0.name) cannot be used: \($0.error)" }
        }
        if !fleet.peers.isEmpty {
            var table = TextTable(
                .leading("asked node"), .leading("state"), .trailing("hits"), .trailing("misses"),
                .trailing("failures"),
                .leading("last error"))
            for peer in fleet.peers {
                let counts = peer.requests
                table.add(
                    peer.url, peer.state, FigureText.count(counts.hit), FigureText.count(counts.miss),
                    FigureText.count(counts.timedOut + counts.failed), peer.lastError ?? "")
            }
            lines.append(table.text)
        }
        return lines.isEmpty ? "The service knows no other nodes; it is \(fleet.state)." : lines.joined(separator: "\n")
    }
}

/// `larder fleet leave`: routers see that the node is not ready, and other nodes go on fetching from it.
struct FleetLeaveCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "leave", abstract: "Have routers send requests to other nodes; the service goes on serving.")

    @OptionGroup var service: ServiceOptions

    var needs: [String] { ["POST /v1/fleet/leave"] }

    func perform(_ client: ServiceClient) throws {
        let fleet: APIDocument<FleetDocument> = try client.document(ServiceRequest(.post, "/v1/fleet/leave"))
        say(service.json ? fleet.text : "The node is \(fleet.value.state).")
    }
}

/// `larder fleet join`: ends the departure.
struct FleetJoinCommand: ClientCommand {
    static let configuration = CommandConfiguration(commandName: "join", abstract: "End the departure of the node.")

    @OptionGroup var service: ServiceOptions

    var needs: [String] { ["POST /v1/fleet/join"] }

    func perform(_ client: ServiceClient) throws {
        let fleet: APIDocument<FleetDocument> = try client.document(ServiceRequest(.post, "/v1/fleet/join"))
        say(service.json ? fleet.text : "The node is \(fleet.value.state).")
    }
}
