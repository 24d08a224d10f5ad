import CacheAPI
import CacheCore

/// The progress of a running job, from its document.
enum JobProgress {
    /// The line for the progress bar.
    static func line(of job: JobDocument) -> ProgressLine {
        let done = job.bytesDone
        let whole = wholeBytes(of: job)
        let sum = whole.map {
            "\(FigureText.bytes(done)) of \($0.isExact ? "" : "about ")\(FigureText.bytes($0.bytes))"
        }
        var figures = [sum ?? FigureText.bytes(done)]
        if job.bytesPerSecond > 0 { figures.append(FigureText.rate(job.bytesPerSecond)) }
        if let left = job.etaSeconds { figures.append(FigureText.span(left) + " left") }
        figures.append("\(FigureText.count(job.itemsDone)) of \(FigureText.count(job.itemsTotal, "item"))")
        if job.itemsWaiting > 0 { figures.append("\(FigureText.count(job.itemsWaiting)) waiting") }
        let failed = job.itemsFailed + job.itemsTimedOut
        if failed > 0 { figures.append("\(FigureText.count(failed)) failed") }
        return ProgressLine(share: whole.map { share(done, of: $0.bytes) }, figures: figures)
    }

    /// The bytes of all items. An item of unknown size counts as the mean of the others; nil if no size is known.
    private static func wholeBytes(of job: JobDocument) -> (bytes: Int64, isExact: Bool)? {
        guard let known = job.bytesTotal else { return nil }
        let (total, unknown) = (job.itemsTotal, job.itemsUnknown)
        guard unknown > 0 else { return (known, true) }
        guard total > unknown else { return nil }
        return (Int64(Double(known) * Double(total) / Double(total - unknown)), false)
    }

    private static func share(_ done: Int64, of whole: Int64) -> Double {
        whole > 0 ? min(1, Double(done) / Double(whole)) : 1
    }
}
