import CacheCore
import Synchronization

/// The origins in force: the catalog's origins in memory, so that reads look them up without a query.
final class OriginTable: Sendable {
    struct Entry: Sendable {
        var origin: Origin
        /// Incremented by each change; the `ETag` in the management API.
        var revision: Int64
    }

    /// The origins and the rules for absolute URLs.
    struct State: Sendable {
        /// By name.
        var entries: [String: Entry] = [:]
        /// The settings for reads of absolute URLs.
        var absolute: OriginSettings
        var allowedHosts: HostPatterns
    }

    private let state: OrderedMutex<State>
    /// The number of changes; incremented after each change.
    private let changeCount = Atomic<UInt64>(0)
    /// A value after each change that makes stored assets obsolete (``ObsoleteAssets``), for a single consumer. Unread
    /// values are one.
    let formChanges: AsyncStream<Void>
    private let formChanged: AsyncStream<Void>.Continuation

    init(absolute: OriginSettings, allowedHosts: HostPatterns) {
        (formChanges, formChanged) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        state = OrderedMutex(.leaf, State(absolute: absolute, allowedHosts: allowedHosts))
    }

    /// The settings for reads of absolute URLs.
    var absolute: OriginSettings { state.withLock { $0.absolute } }

    /// Applies several changes at once: no read sees a part of them.
    func change(_ body: (inout State) -> Void) {
        let (before, after) = state.withLock { state in
            let before = state.forms
            body(&state)
            return (before, state.forms)
        }
        changeCount.add(1, ordering: .releasing)
        if before != after { formChanged.yield() }
    }

    /// All origins, sorted by name.
    var all: [Entry] { state.withLock { $0.entries.values.sorted { $0.origin.name < $1.origin.name } } }

    /// How often an origin was mounted, changed or removed.
    var changes: UInt64 { changeCount.load(ordering: .acquiring) }

    subscript(name: String) -> Entry? {
        get { state.withLock { $0.entries[name] } }
        set { change { $0.entries[name] = newValue } }
    }

    /// The origin of that name; throws `.notFound` if there is none.
    func mounted(_ name: String) throws(CacheError) -> Origin {
        guard let entry = self[name] else { throw CacheError(.notFound, "There is no origin named \(name).") }
        return entry.origin
    }

    /// Throws `.upstreamForbidden` unless `upstream.allowedHosts` permits the URL's host and port.
    func allow(_ url: UpstreamURL) throws(CacheError) {
        let allowedHosts = state.withLock { $0.allowedHosts }
        guard allowedHosts.contains(url) else {
            let host = url.bracketedHost
            let reason =
                allowedHosts.containsHost(of: url)
                ? "upstream.allowedHosts permits \(host) on other ports only; add \(host):\(url.port)."
                : "upstream.allowedHosts does not permit \(host):\(url.port)."
            throw CacheError(.upstreamForbidden, reason)
        }
    }
}

extension OriginTable.State {
    /// The settings that determine the form of stored assets.
    fileprivate struct Form: Hashable {
        let cmcd: OriginSettings.CMCD
        let isEncrypted: Bool
    }

    fileprivate var forms: [String: Form] {
        let settings = entries.mapValues(\.origin.settings).merging([Origin.absoluteName: absolute]) { $1 }
        return settings.mapValues { Form(cmcd: $0.cmcd, isEncrypted: $0.isEncrypted) }
    }
}
