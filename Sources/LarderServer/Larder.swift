/// The service as a whole.
enum Larder {
    /// Serves until the process is told to stop.
    static func serve(settings: LarderSettings) async throws {}
}
