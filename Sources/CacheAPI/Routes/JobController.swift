import CacheCore
import CacheEngine
import Cryptography
import HTTPTypes
import ReaderAccess

/// Routes for prefetch jobs.
struct JobController: Controller {
    let jobs: PrefetchJobs
    let live: LiveAPISettings
    let readers: ReaderLimits
    let clock: any Clock<Duration>

    private var limits: APISettings.Limits { live.values.limits }

    static let routes: [Route<Self>] = [
        Route(.post, "/v1/jobs", .scope(.write), limits: .checked) { try await $0.submit($1, $2) },
        Route(.get, "/v1/jobs", .scope(.read), readsQuery: true, limits: .checked) { try await $0.list($1, $2) },
        Route(.get, "/v1/jobs/{jobId}", .scope(.read), limits: .checked) {
            .job(try await $0.jobs.job($0.id($2)))
        },
        Route(.patch, "/v1/jobs/{jobId}", .scope(.write), limits: .checked) { try await $0.change($1, $2) },
        Route(.delete, "/v1/jobs/{jobId}", .scope(.write), limits: .checked) { controller, _, context in
            .job(try await controller.jobs.cancel(controller.id(context)))
        },
        Route(.get, "/v1/jobs/{jobId}/items", .scope(.read), readsQuery: true, limits: .checked) {
            try await $0.items($1, $2)
        },
        Route(.post, "/v1/jobs/{jobId}/retry", .scope(.write), limits: .checked) { controller, _, context in
            let id = try await controller.id(context)
            // A superseded job supersedes the others of its queue when it is repeated.
            if let reader = context.reader, reader.isLimited, try await controller.jobs.job(id).record.supersedes {
                throw reader.refusal("retry of a superseded job, which cancels other jobs")
            }
            return controller.accepted(try await controller.jobs.retry(id, by: context.reader?.owner))
        },
        Route(.get, "/v1/jobs/{jobId}/events", .scope(.read), limits: .checked) { try await $0.events($1, $2) },
    ]

    /// The job in the path. Throws `.tokenScope` unless it belongs to the reader, or all its items are inside its limits.
    private func id(_ context: APIContext) async throws(CacheError) -> String {
        let id = try context.parameter("jobId")
        try await readers.check(id, of: jobs, for: context.reader)
        return id
    }

    /// Creates a job. With `Prefer: wait=N` the response waits for its end, at most `N` seconds (RFC 7240 §4.3).
    ///
    /// A repeated `Idempotency-Key` returns the first job. The digest of the body detects a key that is reused for
    /// another request.
    private func submit(_ request: Request, _ context: APIContext) async throws -> Response {
        let key = try Self.idempotencyKey(request.headers[.idempotencyKey])
        let wait = Preferences(request).wait
        if request.headers[.contentType].map({ MediaType.essence($0) }) == JobLines.mediaType {
            return try await submitLines(request, key, context)
        }
        var order = try await request.json(upTo: limits.jobBodyBytes) { json, bytes in
            try CreateJobRequest(json, fingerprint: HashFunction.sha256.digest(of: bytes).hexDigits)
        }
        order.owner = context.reader?.owner
        guard !order.isDryRun else { return try await plan(order, context) }
        // Each token has keys of its own: it must not get the job of another one.
        let job = try await jobs.submit(order, idempotencyKey: Self.ownKey(key, of: order.owner))
        context.bodyClaim?.giveBack()  // not held during the wait
        return try await created(job, within: wait, context)
    }

    /// The idempotency key of a token.
    private static func ownKey(_ key: String?, of owner: TokenOwner?) -> String? {
        key.map { key in owner.map { "\($0.name) \(key)" } ?? key }
    }

    /// Creates a job from lines, which are checked while they arrive. Nothing is left of a job with an invalid line, or of a
    /// client that disconnects.
    private func submitLines(_ request: Request, _ key: String?, _ context: APIContext) async throws -> Response {
        let upload = context.budgets?.uploads.claim(for: context.reader)
        if let refusal = upload?.grow(by: 1) { throw JobLines.refused(refusal) }
        defer { upload?.giveBack() }
        var (lines, intake) = (JobLines(jobs, owner: context.reader?.owner), JobIntake?.none)
        do {
            for try await part in request.body {
                try await lines.add(part, upTo: JobIntake.mostBytes, lineLimit: limits.bodyBytes)
                context.bodyClaim?.giveBack()  // its lines are checked
            }
            intake = try await lines.finish()
        } catch {
            lines.intake?.discard()
            throw error
        }
        guard var intake else { throw CacheError(.internal, "The lines of a job have no end.") }
        guard !lines.isDryRun else {
            if let refusal = context.bodyClaim?.grow(by: UpstreamLister.bodyLimit) { throw RefusedBody(refusal).error }
            let plan = try await whileClientStays(context.disconnection) { [intake] () async throws(CacheError) in
                try await intake.plan()
            }
            return .json(JobPlanDocument(plan))
        }
        let job = try await intake.submit(
            idempotencyKey: Self.ownKey(key, of: context.reader?.owner), fingerprint: lines.fingerprint)
        upload?.giveBack()  // not held during the wait
        return try await created(job, within: Preferences(request).wait, context)
    }

    /// The response to a new job, which waits for its end on request.
    private func created(_ job: JobSnapshot, within wait: Duration?, _ context: APIContext) async throws -> Response {
        var job = job
        guard let wait else { return accepted(job) }
        if !job.record.state.isFinished, let finished = try await finished(job.record.id, within: wait, context) {
            job = finished
        }
        var response = job.record.state.isFinished ? .json(JobDocument(job)) : accepted(job)
        response.headers[.location] = "/v1/jobs/\(job.record.id)"
        response.headers[.preferenceApplied] = "wait=\(wait.components.seconds)"
        return response
    }

    /// The files that a job would fetch. Lists are read until the client disconnects.
    private func plan(_ order: CreateJobRequest, _ context: APIContext) async throws -> Response {
        if order.items.contains(where: { $0.list != nil }),
            let refusal = context.bodyClaim?.grow(by: UpstreamLister.bodyLimit)
        {
            throw RefusedBody(refusal).error
        }
        let plan = try await whileClientStays(context.disconnection) { () async throws(CacheError) in
            try await jobs.plan(order)
        }
        return .json(JobPlanDocument(plan))
    }

    /// Applies a merge patch (RFC 7396) to the terms of an unfinished job, if the conditions of the request hold.
    private func change(_ request: Request, _ context: APIContext) async throws -> Response {
        let id = try await id(context)
        let patch = try await request.json(upTo: limits.bodyBytes, types: Request.mergePatchTypes) { json, _ in
            try JobPatch(json)
        }
        let conditions = RevisionConditions(request)
        let job = try await conditions.repeating { () async throws(CacheError) in
            let condition = try conditions.precondition(at: try await jobs.job(id).record.revision)
            return try await jobs.change(id, by: patch, if: condition)
        }
        return .job(job)
    }

    /// The response 202 for an unfinished job.
    private func accepted(_ job: JobSnapshot) -> Response {
        .json(
            JobDocument(job), status: .accepted,
            headers: [.location: "/v1/jobs/\(job.record.id)", .retryAfter: "1"])
    }

    /// Waits for the end of a job and returns it; nil if the job has not ended after `wait`.
    ///
    /// Throws `.cancelled` if the client disconnects.
    private func finished(
        _ id: String, within wait: Duration, _ context: APIContext
    ) async throws -> JobSnapshot? {
        let events = try await jobs.events(id)
        return try await whileClientStays(context.disconnection) { [clock] in
            try await withThrowingTaskGroup(of: JobSnapshot?.self) { group in
                group.addTask { await events.first { $0.record.state.isFinished } }
                group.addTask {
                    try await clock.sleep(for: wait)
                    return nil
                }
                defer { group.cancelAll() }
                return try await group.next() ?? nil
            }
        }
    }

    /// Lists jobs page by page. A limited reader sees its own jobs, and those whose items are all inside its limits.
    private func list(_ request: Request, _ context: APIContext) async throws -> Response {
        let query = try request.query(accepting: ["state", "label", "queue", "limit", "cursor", "total"])
        var list = JobQuery(
            state: try query.choice("state", of: JobState.ofJobs), label: query.string("label"),
            queue: query.string("queue"),
            limit: try query.limit(), cursor: query.string("cursor"))
        let wantsTotal = try query.wantsTotal()
        guard let reader = context.reader, reader.isLimited else {
            let page = try await jobs.page(list)
            return .page(
                page.items.map(JobDocument.init), next: page.nextCursor,
                total: wantsTotal ? try await jobs.count(list) : nil)
        }
        guard !wantsTotal else { throw reader.refusal("the total of all jobs") }
        let limit = list.limit
        var (found, seen): ([JobDocument], Int) = ([], 0)
        repeat {
            list.limit = limit - found.count
            let page = try await jobs.page(list)
            for job in page.items where try await readers.permits(job, of: jobs, for: reader) {
                found.append(JobDocument(job))
            }
            list.cursor = page.nextCursor
            seen += page.items.count
        } while list.cursor != nil && found.count < limit && seen < Self.seenAtOnce
        return .page(found, next: list.cursor)
    }

    /// The number of jobs that one page of a limited reader examines at most; the page can have fewer jobs than it asks
    /// for.
    private static let seenAtOnce = 1000

    /// Lists the items of a job page by page.
    private func items(_ request: Request, _ context: APIContext) async throws -> Response {
        let query = try request.query(accepting: ["limit", "cursor", "total"])
        let id = try await id(context)
        let page = try await jobs.items(id, limit: try query.limit(), cursor: query.string("cursor"))
        let total = try query.wantsTotal() ? try await jobs.job(id).tally.itemsTotal : nil
        return .page(page.items.map(JobItemDocument.init), next: page.nextCursor, total: total)
    }

    /// Streams the events of a job. Answers 204 if the client has seen the last event already.
    private func events(_ request: Request, _ context: APIContext) async throws -> Response {
        let seen = request.headers[.lastEventID].flatMap { Int64($0) }
        let id = try await id(context)
        let present = try await jobs.job(id)
        if let seen, present.record.state.isFinished, present.version <= seen {
            return Response(status: .noContent)  // an EventSource stops reconnecting on 204
        }
        return try .events(JobEventRenderer(id: id, jobs: jobs, seen: seen), context)
    }

    /// Returns a valid `Idempotency-Key`; nil without the field.
    private static func idempotencyKey(_ text: String?) throws(CacheError) -> String? {
        guard let text else { return nil }
        guard (1...255).contains(text.utf8.count), text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw CacheError(.malformedRequest, "Idempotency-Key must have 1 to 255 visible ASCII characters.")
        }
        return text
    }
}

extension Response {
    /// A job with the revision of its terms as entity tag: progress does not change it, so that a change can name it.
    fileprivate static func job(_ job: JobSnapshot) -> Response {
        .json(JobDocument(job), headers: entityTag(job.record.revision))
    }
}
