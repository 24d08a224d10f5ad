extension PrefetchJob {
    /// The seconds until the job may run; nil: it is paused, or the time is unknown.
    func timeUntilRun(at now: Moment) -> Double? {
        guard record.state != .paused else { return nil }
        guard timeState.hold != nil else { return 0 }
        return timeState.nextRunAt.map { max(0, $0.since(now.civil).inSeconds) }
    }

    /// The end of a job that could run without interruption until `seconds` from now: its windows interrupt it.
    func end(after seconds: Double, _ zones: [String: ZoneRules], at now: Moment) -> Timestamp {
        let start = timeUntilRun(at: now) ?? 0
        return record.times.end(of: max(0, seconds - start), from: now.civil + .seconds(start), zones)
    }
}
