/// The part of a job that clients can change while it is unfinished.
package struct JobTerms: Hashable, Sendable {
    package var priority: JobPriority
    /// The rate limit of the job; nil: no limit.
    package var maxBytesPerSecond: Int64?
    /// The time when the unfinished job ends; nil: none.
    package var deadlineAt: Timestamp?
    /// The times when items may run.
    package var times: JobTimes
    /// Whether a client has stopped the job until it is resumed.
    package var isPaused: Bool
    /// Increases with each change.
    package var revision: Int64

    package init(
        priority: JobPriority, maxBytesPerSecond: Int64? = nil, deadlineAt: Timestamp? = nil,
        times: JobTimes = JobTimes(), isPaused: Bool = false, revision: Int64
    ) {
        self.priority = priority
        self.maxBytesPerSecond = maxBytesPerSecond
        self.deadlineAt = deadlineAt
        self.times = times
        self.isPaused = isPaused
        self.revision = revision
    }
}

extension JobRecord {
    /// The terms of the job. Those of a finished job do not change its state.
    package var terms: JobTerms {
        get {
            JobTerms(
                priority: priority, maxBytesPerSecond: maxBytesPerSecond, deadlineAt: deadlineAt, times: times,
                isPaused: state == .paused, revision: revision)
        }
        set {
            (priority, maxBytesPerSecond) = (newValue.priority, newValue.maxBytesPerSecond)
            (deadlineAt, times, revision) = (newValue.deadlineAt, newValue.times, newValue.revision)
            guard !state.isFinished, newValue.isPaused != (state == .paused) else { return }
            state = newValue.isPaused ? .paused : .queued
        }
    }
}

/// A change of the terms of a job. Members that are nil or absent stay; null removes a limit.
package struct JobPatch: Hashable, Sendable {
    package var priority: JobPriority?
    package var maxBytesPerSecond: Omittable<Int64>
    package var deadlineAt: Omittable<Timestamp>
    package var notBefore: Omittable<Timestamp>
    package var windows: Omittable<[JobWindow]>
    package var isPaused: Bool?

    package init(
        priority: JobPriority? = nil, maxBytesPerSecond: Omittable<Int64> = .absent,
        deadlineAt: Omittable<Timestamp> = .absent, notBefore: Omittable<Timestamp> = .absent,
        windows: Omittable<[JobWindow]> = .absent, isPaused: Bool? = nil
    ) {
        self.priority = priority
        self.maxBytesPerSecond = maxBytesPerSecond
        self.deadlineAt = deadlineAt
        self.notBefore = notBefore
        self.windows = windows
        self.isPaused = isPaused
    }

    /// The changed terms; the same ones if the patch changes nothing.
    ///
    /// Throws `.invalidField("deadlineAt")` for a new deadline that has passed.
    package func applied(to terms: JobTerms, at now: Timestamp) throws(CacheError) -> JobTerms {
        var changed = terms
        if let priority { changed.priority = priority }
        if let limit = maxBytesPerSecond.update { changed.maxBytesPerSecond = limit }
        if let deadline = deadlineAt.update { changed.deadlineAt = deadline }
        if let time = notBefore.update { changed.times.notBefore = time }
        if let windows = windows.update { changed.times.windows = windows ?? [] }
        if let isPaused { changed.isPaused = isPaused }
        if let deadline = changed.deadlineAt, deadline != terms.deadlineAt, deadline <= now {
            throw .invalid("deadlineAt", "The deadline has passed: give a later time, or none.")
        }
        guard changed != terms else { return terms }
        changed.revision += 1
        return changed
    }
}
