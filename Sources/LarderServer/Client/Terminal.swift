import Glibc

/// A standard stream that may be a terminal.
struct Terminal: Sendable {
    private static let usualColumns = 80
    private static let usualRows = 24

    private let descriptor: Int32

    static let input = Terminal(descriptor: STDIN_FILENO)
    static let output = Terminal(descriptor: STDOUT_FILENO)
    static let error = Terminal(descriptor: STDERR_FILENO)

    /// Whether the stream is a terminal that understands control sequences.
    var isInteractive: Bool { isatty(descriptor) == 1 && ClientEnvironment.process.terminal != "dumb" }

    /// The current size in characters; 80 × 24 if it is unknown.
    var size: (columns: Int, rows: Int) {
        var size = winsize()
        guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0 else {
            return (Self.usualColumns, Self.usualRows)
        }
        return (Int(size.ws_col), Int(size.ws_row))
    }

    /// Writes all of `text`. If the reader has closed the pipe, the program ends with SIGPIPE, as a filter does.
    func write(_ text: String) {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0 && errno == EINTR { continue }
            if count < 0 && errno == EPIPE {
                signal(SIGPIPE, SIG_DFL)
                raise(SIGPIPE)
            }
            guard count > 0 else { return }  // nothing is left that could report the error
            rest = rest.dropFirst(count)
        }
    }

    /// Switches the echo of typed characters off or on.
    func setEcho(_ isOn: Bool) {
        var settings = termios()
        guard tcgetattr(descriptor, &settings) == 0 else { return }
        if isOn { settings.c_lflag |= tcflag_t(ECHO) } else { settings.c_lflag &= ~tcflag_t(ECHO) }
        tcsetattr(descriptor, TCSAFLUSH, &settings)
    }
}

/// A screen that is redrawn in place. The terminal is restored by ``close()``.
struct LiveScreen {
    private let terminal: Terminal

    /// Opens the alternate screen, without cursor and echo.
    init(on terminal: Terminal) {
        self.terminal = terminal
        Terminal.input.setEcho(false)
        terminal.write("\u{1B}[?1049h\u{1B}[?25l")
    }

    /// Replaces the content. Lines and rows that do not fit are cut off.
    func draw(_ lines: (_ columns: Int) -> [String]) {
        let (columns, rows) = terminal.size
        let shown = lines(columns).prefix(rows).map { $0.prefix(columns) + "\u{1B}[K" }
        terminal.write("\u{1B}[H" + shown.joined(separator: "\r\n") + "\u{1B}[J")
    }

    /// Restores the screen, the cursor and the echo.
    func close() {
        terminal.write("\u{1B}[?25h\u{1B}[?1049l")
        Terminal.input.setEcho(true)
    }
}
