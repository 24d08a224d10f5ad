import CacheCore
import CacheEngine
import HTTPTypes
import ReaderAccess

/// Routes for schedules, which start prefetch jobs. A limited reader sees and changes its own ones, and those whose items
/// are all inside its limits.
struct ScheduleController: Controller {
    let schedules: JobSchedules
    let jobs: PrefetchJobs
    let live: LiveAPISettings
    let wallClock: any WallClock

    static let routes: [Route<Self>] = [
        Route(.get, "/v1/schedules", .scope(.read), limits: .checked) { controller, _, context in
            let schedules = try await controller.schedules.all()
            return .page(
                schedules.filter { (try? Self.check($0.stored.schedule, for: context.reader)) != nil }
                    .map(ScheduleDocument.init),
                next: nil)
        },
        Route(.get, "/v1/schedules/{name}", .scope(.read), limits: .checked) { controller, request, context in
            let found = try await controller.find(context)
            return try .revised(ScheduleDocument(found), found.stored.revision, to: request)
        },
        Route(.put, "/v1/schedules/{name}", .scope(.write), limits: .checked) { try await $0.put($1, $2) },
        Route(.delete, "/v1/schedules/{name}", .scope(.write), limits: .checked) { controller, request, context in
            _ = try await controller.find(context)
            let conditions = RevisionConditions(request)
            try await controller.schedules.delete(context.parameter("name")) { present throws(CacheError) in
                try Self.check(present.schedule, for: context.reader)
                return try conditions.precondition(at: present.revision)
            }
            return Response(status: .noContent)
        },
    ]

    /// Throws `.tokenScope` unless the schedule belongs to the reader with its present limits, or all its items are inside
    /// the limits.
    private static func check(_ schedule: JobSchedule, for reader: Reader?) throws(CacheError) {
        guard let reader, reader.isLimited, schedule.owner != reader.owner else { return }
        do throws(CacheError) {
            for item in try ScheduleRequest.job(schedule.job).items {
                try ReaderLimits.check(item.reference, for: reader)
            }
        } catch {
            throw reader.refusal("this schedule")
        }
    }

    /// The schedule in the path. A limited reader does not learn which schedules of others exist.
    private func find(_ context: APIContext) async throws(CacheError) -> ScheduleSnapshot {
        do throws(CacheError) {
            let found = try await schedules.schedule(context.parameter("name"))
            try Self.check(found.stored.schedule, for: context.reader)
            return found
        } catch {
            guard error.code == .notFound, let reader = context.reader, reader.isLimited else { throw error }
            throw reader.refusal("this schedule")
        }
    }

    /// Creates or replaces a schedule, if the request's conditions hold. Its jobs get the limits that the token has when
    /// they start.
    private func put(_ request: Request, _ context: APIContext) async throws -> Response {
        let name = try context.parameter("name")
        try JobSchedule.check(name: name)
        let limit = min(live.values.limits.jobBodyBytes, JobSchedules.mostBytes)
        var order = try await request.json(upTo: limit) { json, _ in try ScheduleRequest(json) }
        if let reader = context.reader {
            guard live.values.access.directory.reader(named: reader.id, at: wallClock.now()) == reader else {
                throw CacheError(
                    .tokenScope,
                    "A schedule needs a token of the configuration, the tokens file or the API: \(reader.id) is none, and its present rights cannot be asked for later."
                )
            }
            order.job.owner = reader.owner
        }
        do throws(CacheError) {
            try await jobs.check(order.job)
        } catch {
            throw error.below("job")
        }
        let schedule = JobSchedule(
            name: name, repeat: order.repeat, isEnabled: order.isEnabled, deadline: order.deadline, job: order.text,
            owner: order.job.owner, createdAt: wallClock.now())
        let conditions = RevisionConditions(request)
        let saved = try await schedules.save(schedule) { present throws(CacheError) in
            if let present { try Self.check(present.schedule, for: context.reader) }
            return try conditions.precondition(at: present?.revision)
        }
        var headers = Response.entityTag(saved.schedule.stored.revision)
        if saved.isNew { headers[.location] = "/v1/schedules/\(name)" }
        return .json(
            ScheduleDocument(saved.schedule), status: saved.isNew ? .created : .ok, headers: headers)
    }
}

extension JobSchedules.Rights {
    /// The rights by the access rules in force.
    init(_ live: LiveAPISettings, wallClock: any WallClock) {
        self.init(
            present: { owner in
                let access = live.values.access
                guard !access.isOpen else { return owner }
                guard let reader = access.directory.reader(named: owner.id, at: wallClock.now()),
                    reader.permits(.write)
                else { return nil }
                return reader.owner
            },
            request: { text throws(CacheError) in try ScheduleRequest.job(text) })
    }
}
