import CacheAPI
import CacheCore

/// The progress of a running job, from its document.
enum JobProgress {
    /// The line for the progress bar.
    static func line(of job: JobDocument) -> ProgressLine {
        let done = FigureText.bytes(job.bytesDone)
        let isExact = job.bytesExpected == job.bytesTotal
        let whole = job.bytesExpected.map { "\(done) of \(isExact ? "" : "about ")\(FigureText.bytes($0))" }
        var figures = [whole ?? done]
        if job.bytesPerSecond > 0 { figures.append(FigureText.rate(job.bytesPerSecond)) }
        if let left = job.etaSeconds { figures.append(FigureText.span(left) + " left") }
        figures.append("\(FigureText.count(job.itemsDone)) of \(FigureText.count(job.itemsTotal, "item"))")
        if job.itemsWaiting > 0 { figures.append("\(FigureText.count(job.itemsWaiting)) waiting") }
        let failed = job.itemsFailed + job.itemsTimedOut
        if failed > 0 { figures.append("\(FigureText.count(failed)) failed") }
        return ProgressLine(share: job.progressRatio, figures: figures)
    }
}
