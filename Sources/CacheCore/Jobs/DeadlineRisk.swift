/// Decides from predictions whether a job is at risk to miss its deadline.
///
/// A prediction counts once it has been late by a share of the time that is left, for a twentieth of the job's time, at most
/// 5 s; in the last quarter of the time at once, also if nothing can be predicted. The share falls from a quarter at the
/// creation to a twentieth at half time: rates of a few seconds are inexact. In the last twentieth of the time a prediction
/// must be late by 0.25 s. The risk ends when predictions have been early as long.
struct DeadlineRisk: Hashable, Sendable {
    private(set) var isAtRisk = false
    /// The uptime since which predictions contradict ``isAtRisk``; nil: they do not.
    private var contradictedSince: Duration?

    private static let lastPart = 0.25
    /// The margins of predictions at the creation and from half time on, as shares of the time that is left.
    private static let (firstShare, leastShare) = (0.25, 0.05)
    /// The interval of reports: a prediction near the deadline is not more exact.
    private static let resolution = Duration.milliseconds(250)
    private static let longestDoubt = Duration.seconds(5)

    /// Takes over a prediction; returns whether ``isAtRisk`` has changed.
    ///
    /// - Parameters:
    ///   - span: The time from the creation of the job to its deadline.
    ///   - predicted: Nil: nothing can be predicted.
    mutating func update(
        _ predicted: Timestamp?, deadline: Timestamp, span: Duration, at now: PrefetchSchedule.Moment
    ) -> Bool {
        let left = deadline.since(now.civil)
        let isUrgent = left.inSeconds <= Self.lastPart * span.inSeconds
        guard predicted != nil || isUrgent else {
            contradictedSince = nil
            return false
        }
        // A risk ends only when the prediction is before the deadline itself.
        let share = max(Self.leastShare, Self.firstShare - (1 - left.inSeconds / max(1e-3, span.inSeconds)) * 0.4)
        let isNear = left.inSeconds <= Self.leastShare * span.inSeconds
        let margin: Duration =
            isAtRisk ? .zero : isNear ? Self.resolution : isUrgent ? .zero : .seconds(max(0, left.inSeconds) * share)
        let isLate = predicted.map { $0 > deadline + margin } ?? true
        guard isLate != isAtRisk else {
            contradictedSince = nil
            return false
        }
        let doubt = min(Self.longestDoubt, .seconds(span.inSeconds / 20))
        let since = contradictedSince ?? now.uptime
        contradictedSince = since
        guard isLate && isUrgent || now.uptime - since >= doubt else { return false }
        (isAtRisk, contradictedSince) = (isLate, nil)
        return true
    }
}
