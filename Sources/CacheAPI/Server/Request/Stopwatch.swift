/// Measures the time since its creation on any clock.
package struct Stopwatch: Sendable {
    private let read: @Sendable () -> Duration

    /// Starts at the clock's current time.
    package init(_ clock: some Clock<Duration>) {
        let start = clock.now
        read = { start.duration(to: clock.now) }
    }

    /// The time since the start.
    package var elapsed: Duration { read() }
}
