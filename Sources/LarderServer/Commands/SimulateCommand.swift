import ArgumentParser
import CacheAPI
import CacheCore
import Foundation

/// `larder simulate`: what eviction policies would make of recorded reads; nothing is served or stored.
struct SimulateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "simulate", abstract: "Play recorded reads against eviction policies.",
        discussion: """
            The trace is a CSV file, in the order of time, of time,key,bytes (objects that are cached whole) or of \
            time,asset,offset,bytes (runs of which only what is missing is fetched). Times are in seconds. A first line \
            that is no numbers is left out.
            """)

    @Option(name: .long, help: ArgumentHelp("The reads.", valueName: "file"))
    var trace: String

    @Option(
        name: .long, help: "One of \(EvictionAlgorithm.allCases.map(\.rawValue).joined(separator: ", ")); repeatable.")
    var algorithm: [EvictionAlgorithm] = [.s3fifo]

    @Option(name: .long, help: ArgumentHelp("Such as 20GiB; repeatable.", valueName: "size"))
    var capacity: [Capacity]

    @OptionGroup var output: OutputOptions

    func run() throws {
        var trials = algorithm.flatMap { algorithm in capacity.map { TraceTrial(algorithm, $0.bytes) } }
        var reader: TraceReader
        do {
            reader = try TraceReader(path: trace)
            while let read = try reader.next() {
                for index in trials.indices { trials[index].play(read) }
            }
        } catch let error as TraceReader.Fault {
            StandardError.write("larder: \(trace): \(error)\n")
            throw ExitCode(1)
        }
        output.write(Self.table(trials), json: .array(trials.map(\.json)))
    }

    private static func table(_ trials: [TraceTrial]) -> String {
        let head = ["algorithm", "capacity", "reads", "hits", "bytes hit", "written", "from upstream"]
        let rows = [head] + trials.map(\.row)
        let widths = head.indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
        return rows.map { row in
            zip(row, widths).map { $0.padding(toLength: $1, withPad: " ", startingAt: 0) }.joined(separator: "  ")
        }.joined(separator: "\n")
    }
}

extension EvictionAlgorithm: ExpressibleByArgument {}

/// A size on the command line.
struct Capacity: ExpressibleByArgument {
    let bytes: Int64

    init?(argument: String) {
        guard let bytes = try? ByteSize.parse(argument), bytes > 0 else { return nil }  // nil is the whole answer
        self.bytes = bytes
    }
}

/// One policy at one capacity.
struct TraceTrial {
    private let algorithm: EvictionAlgorithm
    private let capacityBytes: Int64
    private var simulation: CacheSimulation

    init(_ algorithm: EvictionAlgorithm, _ capacityBytes: Int64) {
        self.algorithm = algorithm
        self.capacityBytes = capacityBytes
        simulation = CacheSimulation(policy: algorithm.policy(capacityBytes: capacityBytes))
    }

    mutating func play(_ read: TraceReader.Read) {
        guard let offset = read.offset else {
            _ = simulation.read(SegmentID(asset: read.asset, index: 0), bytes: read.bytes)
            return
        }
        simulation.read(ByteRange(offset: offset, length: read.bytes), of: read.asset, at: read.at)
    }

    var row: [String] {
        let tally = simulation.tally
        return [
            algorithm.rawValue, ByteSize.format(capacityBytes), String(tally.requests),
            Self.percent(tally.requestHitRatio), Self.percent(tally.byteHitRatio), String(tally.writtenBytes),
            String(tally.missedBytes),
        ]
    }

    var json: JSON {
        let tally = simulation.tally
        return [
            "algorithm": .string(algorithm.rawValue), "capacityBytes": .integer(capacityBytes),
            "requests": .integer(tally.requests), "requestHitRatio": .number(tally.requestHitRatio),
            "byteHitRatio": .number(tally.byteHitRatio), "writtenBytes": .integer(tally.writtenBytes),
            "upstreamBytes": .integer(tally.missedBytes),
        ]
    }

    private static func percent(_ ratio: Double) -> String { String(format: "%.2f %%", 100 * ratio) }
}
