import ArgumentParser
import CacheAPI
import CacheCore
import CacheSimulation
import Foundation

/// `larder simulate`: evaluates eviction policies with a recorded trace of reads. Nothing is served or stored.
struct SimulateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "simulate", abstract: "Simulate eviction policies with recorded reads.",
        discussion: """
            The trace is a CSV file, sorted by time, with the columns time,key,bytes (each object is cached as a whole) or \
            time,asset,offset,bytes (only missing byte ranges are fetched). Times are in seconds. A header line is \
            skipped.
            """)

    @Option(name: .long, help: ArgumentHelp("CSV file of reads.", valueName: "file"))
    var trace: String

    @Option(
        name: .long,
        help: "Eviction algorithm: \(EvictionAlgorithm.allCases.map(\.rawValue).joined(separator: ", ")); repeatable.")
    var algorithm: [EvictionAlgorithm] = [.s3fifo]

    @Option(name: .long, help: ArgumentHelp("Cache capacity, for example 20GiB; repeatable.", valueName: "size"))
    var capacity: [Capacity]

    @OptionGroup var output: OutputOptions

    func run() throws {
        var simulations = algorithm.flatMap { algorithm in capacity.map { TraceSimulation(algorithm, $0.bytes) } }
        var reader: TraceReader
        do {
            reader = try TraceReader(path: trace)
            while let read = try reader.next() {
                for index in simulations.indices { simulations[index].play(read) }
            }
        } catch let error as TraceReader.Fault {
            output.report(ClientError(.local(code: "invalidTrace"), "\(trace): \(error)"))
            throw ExitCode(1)
        }
        output.write(Self.table(simulations), json: .array(simulations.map(\.json)))
    }

    /// One row per simulation, in aligned columns.
    private static func table(_ simulations: [TraceSimulation]) -> String {
        let head = ["algorithm", "capacity", "reads", "hits", "bytes hit", "written", "from upstream"]
        let rows = [head] + simulations.map(\.row)
        let widths = head.indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
        return rows.map { row in
            zip(row, widths).map { $0.padding(toLength: $1, withPad: " ", startingAt: 0) }.joined(separator: "  ")
        }.joined(separator: "\n")
    }
}

extension EvictionAlgorithm: ExpressibleByArgument {}

/// A capacity on the command line.
struct Capacity: ExpressibleByArgument {
    /// Positive.
    let bytes: Int64

    init?(argument: String) {
        guard let bytes = try? ByteSize.parse(argument), bytes > 0 else { return nil }  // ArgumentParser reports it
        self.bytes = bytes
    }
}

/// One simulated policy at one capacity.
struct TraceSimulation {
    /// The eviction algorithm and the capacity in bytes.
    private let algorithm: EvictionAlgorithm
    private let capacityBytes: Int64
    private var simulation: PolicySimulation

    init(_ algorithm: EvictionAlgorithm, _ capacityBytes: Int64) {
        self.algorithm = algorithm
        self.capacityBytes = capacityBytes
        simulation = PolicySimulation(policy: algorithm.policy(capacityBytes: capacityBytes))
    }

    /// Applies one read: a whole object as one segment, a range as the segments that it covers.
    mutating func play(_ read: TraceReader.Read) {
        guard let offset = read.offset else {
            _ = simulation.read(SegmentID(asset: read.asset, index: 0), bytes: read.bytes)
            return
        }
        simulation.read(ByteRange(offset: offset, length: read.bytes), of: read.asset, at: read.at)
    }

    /// The cells of the text table.
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
