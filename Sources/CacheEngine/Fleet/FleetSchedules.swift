import CacheCore
import CacheStore
import EtcdClient
import Logging

/// The schedules of a fleet in etcd.
///
/// | key below `/larder/FLEET/schedules/` | value |
/// |---|---|
/// | `documents/NAME` | ``ScheduleText``, sealed |
/// | `runs/NAME` | the last ``ScheduledRun`` |
struct FleetSchedules: ScheduleStore {
    /// The number of documents in one request, of at most 512 KiB each.
    private static let batch = 8

    let desired: DesiredState
    let logger: Logger

    var readInterval: Duration? { .seconds(3) }
    private var documents: String { desired.root + "schedules/documents/" }
    private var runs: String { desired.root + "schedules/runs/" }

    func read(_ known: [String: StoredSchedule]) async throws(CacheError) -> [String: StoredSchedule] {
        let result = try await desired.etcd.commit(
            EtcdTransaction([.list(documents, keysOnly: true), .list(runs)]))
        guard result.entries.count == 2 else { throw EtcdClient.malformed }
        var schedules: [String: StoredSchedule] = [:]
        var changed: [String] = []
        for entry in result.entries[0] {
            let name = String(entry.key.dropFirst(documents.count))
            guard let present = known[name], present.revision == entry.revision else {
                changed.append(name)
                continue
            }
            schedules[name] = present
            schedules[name]?.run = nil
        }
        for stored in try await documents(of: changed) { schedules[stored.schedule.name] = stored }
        for entry in result.entries[1] {
            let name = String(entry.key.dropFirst(runs.count))
            schedules[name]?.run = try? JSONParser.parse(entry.value).decode(ScheduledRun.self, isStrict: false)
        }
        return schedules
    }

    /// The documents of these schedules. Those that this node cannot read are left out.
    private func documents(of names: [String]) async throws(CacheError) -> [StoredSchedule] {
        var (schedules, rest): ([StoredSchedule], ArraySlice) = ([], names[...])
        while !rest.isEmpty {
            let result = try await desired.etcd.commit(
                EtcdTransaction(rest.prefix(Self.batch).map { .get(documents + $0) }))
            rest = rest.dropFirst(Self.batch)
            for entry in result.entries.joined() {
                let name = String(entry.key.dropFirst(documents.count))
                do throws(CacheError) {
                    let text = String(decoding: try desired.opened(entry), as: UTF8.self)
                    schedules.append(
                        StoredSchedule(
                            schedule: try ScheduleText.schedule(name, text), run: nil, revision: entry.revision))
                } catch {
                    logger.error(
                        "a schedule of the fleet cannot be read at this node",
                        metadata: ["schedule": "\(name)", "error": "\(error)"])
                }
            }
        }
        return schedules
    }

    func save(_ schedule: JobSchedule, if precondition: Precondition) async throws(CacheError) -> Int64 {
        let key = documents + schedule.name
        let sealed = try desired.sealed(Array(try ScheduleText.text(of: schedule).utf8), as: key)
        return try await desired.change(key, .put(key, sealed), if: precondition)
    }

    func delete(_ name: String, if precondition: Precondition) async throws(CacheError) {
        _ = try await desired.change(documents + name, .delete(documents + name), if: precondition)
        _ = try await desired.etcd.commit(EtcdTransaction([.delete(runs + name)]))
    }

    /// A run for an earlier instant than the recorded one is of a node that was slow; it is not recorded.
    func save(_ run: ScheduledRun, of schedule: String) async throws(CacheError) {
        let key = runs + schedule
        let result = try await desired.etcd.commit(EtcdTransaction([.get(key), .get(documents + schedule)]))
        guard result.entries.count == 2, !result.entries[1].isEmpty else { return }
        let present = result.entries[0].first
        let last = present.flatMap { try? JSONParser.parse($0.value).decode(ScheduledRun.self, isStrict: false) }
        guard last.map({ $0.dueAt <= run.dueAt }) ?? true else { return }
        let condition: EtcdTransaction.Condition = present.map { .revision($0.revision, of: key) } ?? .absent(key)
        _ = try await desired.etcd.commit(EtcdTransaction(if: [condition], [.put(key, run.jsonBytes)]))
    }
}
