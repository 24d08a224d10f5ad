import ArgumentParser
import CacheAPI
import CacheCore

/// `larder policy`: shows and changes the eviction policy of a running service.
struct PolicyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "policy", abstract: "Show and change the eviction policy.",
        subcommands: [PolicyShowCommand.self, PolicySetCommand.self], defaultSubcommand: PolicyShowCommand.self)
}

/// `larder policy [show]`: shows the policy in force.
struct PolicyShowCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "show", abstract: "Show the policy in force; this is the default.")

    @OptionGroup var service: ServiceOptions

    var needs: [String] { ["GET /v1/policy"] }

    func perform(_ client: ServiceClient) throws {
        let policy: APIDocument<JSON> = try client.document(ServiceRequest(.get, "/v1/policy"))
        say(service.json ? policy.text : Assignments.table(of: policy.value))
    }
}

/// `larder policy set`: changes members of the policy.
struct PolicySetCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "set", abstract: "Change members of the policy, such as capacityBytes=2TiB algorithm=lru.")

    @Argument(help: ArgumentHelp("Member of the policy; repeatable.", valueName: "name=value"))
    var members: [String]

    @OptionGroup var service: ServiceOptions

    var needs: [String] { ["PATCH /v1/policy"] }

    func perform(_ client: ServiceClient) throws {
        let policy: APIDocument<JSON> = try client.document(
            ServiceRequest(.patch, "/v1/policy", body: try Assignments.document(members)))
        say(service.json ? policy.text : Assignments.table(of: policy.value))
    }
}
