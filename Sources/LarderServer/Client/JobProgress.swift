import CacheCore

/// The progress of a running job, from its document.
enum JobProgress {
    /// The line for the progress bar.
    static func line(of job: JSON) -> ProgressLine {
        let done = job.integer("bytesDone") ?? 0
        let whole = wholeBytes(of: job)
        let sum = whole.map {
            "\(FigureText.bytes(done)) of \($0.isExact ? "" : "about ")\(FigureText.bytes($0.bytes))"
        }
        var figures = [sum ?? FigureText.bytes(done)]
        if let rate = job.number("bytesPerSecond"), rate > 0 { figures.append(FigureText.rate(rate)) }
        if let left = job.number("etaSeconds") { figures.append(FigureText.span(left) + " left") }
        let (items, total) = (job.integer("itemsDone") ?? 0, job.integer("itemsTotal") ?? 0)
        figures.append("\(FigureText.count(items)) of \(FigureText.count(total, "item"))")
        let waiting = job.integer("itemsWaiting") ?? 0
        if waiting > 0 { figures.append("\(FigureText.count(waiting)) waiting") }
        let failed = (job.integer("itemsFailed") ?? 0) + (job.integer("itemsTimedOut") ?? 0)
        if failed > 0 { figures.append("\(FigureText.count(failed)) failed") }
        return ProgressLine(share: whole.map { share(done, of: $0.bytes) }, figures: figures)
    }

    /// The bytes of all items. An item of unknown size counts as the mean of the others; nil if no size is known.
    private static func wholeBytes(of job: JSON) -> (bytes: Int64, isExact: Bool)? {
        guard let known = job.integer("bytesTotal"), let total = job.integer("itemsTotal") else { return nil }
        let unknown = job.integer("itemsUnknown") ?? 0
        guard unknown > 0 else { return (known, true) }
        guard total > unknown else { return nil }
        return (Int64(Double(known) * Double(total) / Double(total - unknown)), false)
    }

    private static func share(_ done: Int64, of whole: Int64) -> Double {
        whole > 0 ? min(1, Double(done) / Double(whole)) : 1
    }
}
