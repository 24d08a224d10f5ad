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

/// `larder policy set`: changes members of the policy, or shows the assets that a change would evict.
struct PolicySetCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "set", abstract: "Change members of the policy, such as capacityBytes=2TiB algorithm=lru.")

    @Argument(help: ArgumentHelp("Member of the policy; repeatable.", valueName: "name=value"))
    var members: [String]

    @Flag(name: .long, help: "Only show the assets that the change would evict.")
    var dryRun = false

    @OptionGroup var service: ServiceOptions

    var needs: [String] { [dryRun ? "POST /v1/policy/plans" : "PATCH /v1/policy"] }

    func perform(_ client: ServiceClient) throws {
        guard !dryRun else { return try showPlan(client) }
        let policy: APIDocument<JSON> = try client.document(
            ServiceRequest(.patch, "/v1/policy", body: try Assignments.document(members)))
        say(service.json ? policy.text : Assignments.table(of: policy.value))
    }

    private func showPlan(_ client: ServiceClient) throws {
        let body: JSON = ["policy": try Assignments.document(members)]
        let plan: APIDocument<PolicyPlanDocument> = try client.document(
            ServiceRequest(.post, "/v1/policy/plans", body: body))
        guard !service.json else { return say(plan.text) }
        let (assets, items) = (plan.value.assets, plan.value.items)
        guard assets > 0 else { return say("The change would evict nothing.") }
        var table = TextTable(.trailing("bytes"), .leading("reason"), .leading("key"))
        for item in items { table.add(FigureText.bytes(item.bytes), item.reason, item.key) }
        if assets > items.count { table.add("", "", "and \(FigureText.count(assets - items.count)) more") }
        say(table.text)
        let (freed, used) = (FigureText.bytes(plan.value.freedBytes), FigureText.bytes(plan.value.usedBytes))
        say("\(FigureText.count(assets, "asset")) would lose \(freed) of the \(used) that are used.")
    }
}
