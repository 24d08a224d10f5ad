package import CacheCore
package import CacheEngine

/// The body of `PUT /v1/schedules/{name}`.
package struct ScheduleRequest: Sendable {
    private struct Document: Decodable {
        var `repeat`: String?
        var at: Omittable<String>
        var enabled: Bool?
        var deadlineSeconds: Omittable<Limited<SecondsAboveZero>>
        var job: JSON?
    }

    package var `repeat`: JobRepeat
    package var isEnabled: Bool
    package var deadline: Duration?
    /// The job as JSON text, and as a request.
    package var text: String
    package var job: CreateJobRequest

    /// The members of the schema.
    package static var keys: [String] { JSON.keys(of: Document.self) }

    /// Reads the `ScheduleRequest` schema. Null is the same as an absent member.
    package init(_ json: JSON) throws(CacheError) {
        let document = try json.decode(Document.self)
        guard let text = document.repeat else {
            throw .invalid("repeat", "The repetition is missing: daily, weekly:mon,thu or every:6h.")
        }
        guard let job = document.job else { throw .invalid("job", "The job to start is missing.") }
        let time = try document.at.value.map { text throws(CacheError) in try LocalTime(text) }
        (`repeat`, isEnabled) = (try JobRepeat(text, at: time), document.enabled ?? true)
        (deadline, self.text) = (document.deadlineSeconds.value?.duration, job.text)
        self.job = try Self.job(job)
    }

    /// The request in the stored text of a schedule.
    static func job(_ text: String) throws(CacheError) -> CreateJobRequest { try job(JSONParser.parse(text.utf8)) }

    private static func job(_ json: JSON) throws(CacheError) -> CreateJobRequest {
        do throws(CacheError) {
            for name in ["deadlineAt", "notBefore"] where json[name] ?? .null != .null {
                throw .invalid(name, "A schedule starts many jobs: use at or deadlineSeconds of the schedule.")
            }
            let request = try CreateJobRequest(json, fingerprint: "")
            guard !request.isDryRun else { throw .invalid("dryRun", "A schedule starts jobs: remove dryRun.") }
            return request
        } catch {
            throw error.below("job")
        }
    }
}

/// The `Schedule` schema.
package struct ScheduleDocument: Codable {
    package struct Run: Codable {
        package var dueAt, startedAt: Timestamp
        package var result: String
        package var jobId: String?
        package var error: RecordedErrorDocument?
    }

    package var name, `repeat`: String
    package var at: String?
    package var enabled: Bool
    package var deadlineSeconds: Double?
    /// `active`, `disabled` or `suspended`.
    package var state: String
    /// The reason of a suspension.
    package var reason: String?
    package var owner: String?
    package var createdAt: Timestamp
    package var nextRunAt: Timestamp?
    package var lastRun: Run?
    /// The job without the queries of URLs, because they may be signatures.
    package var job: JSON
}

extension ScheduleDocument {
    package init(_ snapshot: ScheduleSnapshot) {
        let (schedule, run) = (snapshot.stored.schedule, snapshot.stored.run)
        let job = (try? JSONParser.parse(schedule.job.utf8)) ?? .null
        self.init(
            name: schedule.name, repeat: schedule.repeat.text, at: schedule.repeat.time?.text,
            enabled: schedule.isEnabled, deadlineSeconds: schedule.deadline?.documentSeconds,
            state: !schedule.isEnabled ? "disabled" : snapshot.suspension == nil ? "active" : "suspended",
            reason: snapshot.suspension, owner: schedule.owner?.id, createdAt: schedule.createdAt,
            nextRunAt: snapshot.nextRunAt, lastRun: run.map(Run.init), job: job.withoutItemQueries)
    }
}

extension ScheduleDocument.Run {
    fileprivate init(_ run: ScheduledRun) {
        self.init(
            dueAt: run.dueAt, startedAt: run.at, result: run.result.rawValue, jobId: run.jobID,
            error: run.error.map(RecordedErrorDocument.init))
    }
}

extension JSON {
    /// A job request without the queries of its items.
    fileprivate var withoutItemQueries: JSON {
        guard case .object(let members) = self else { return self }
        return .object(
            members.map { member in
                guard member.key == "items", case .array(let items) = member.value else { return member }
                return Member("items", .array(items.map(\.withoutQueries)))
            })
    }

    private var withoutQueries: JSON {
        guard case .object(let members) = self else { return self }
        return .object(
            members.map { member in
                guard ["url", "path"].contains(member.key), let text = member.value.string else { return member }
                return Member(member.key, .string(text.withoutQuery))
            })
    }
}
