package import CacheCore
import CacheStore

/// The files that a job would fetch: the result of its dry run.
package struct JobPlan: Sendable {
    /// One of the files.
    package struct Entry: Sendable {
        package var reference: AssetReference
        /// The bytes that would be fetched or are cached; nil: the length of the file is unknown.
        package var bytes: Int64?
        /// The position of the list that selects the file; nil: the request names the file.
        package var parent: Int?

        package init(reference: AssetReference, bytes: Int64? = nil, parent: Int? = nil) {
            self.reference = reference
            self.bytes = bytes
            self.parent = parent
        }
    }

    /// The number of files. A playlist counts as one.
    package private(set) var files = 0
    /// The bytes of the files of known length.
    package private(set) var bytes: Int64 = 0
    /// The number of files of unknown length.
    package private(set) var filesOfUnknownLength = 0
    /// The entries of lists that lie outside of their origin or of the limits of the token.
    package var skippedEntries = 0
    /// The first files.
    package private(set) var entries: [Entry] = []

    /// The largest number of entries.
    package static let mostEntries = 20

    package init() {}

    package mutating func add(_ entry: Entry) {
        files += 1
        if let bytes = entry.bytes { self.bytes.addWithoutOverflow(bytes) } else { filesOfUnknownLength += 1 }
        if entries.count < Self.mostEntries { entries.append(entry) }
    }
}

extension Int64 {
    fileprivate mutating func addWithoutOverflow(_ other: Int64) {
        let (sum, isTooLarge) = addingReportingOverflow(other)
        self = isTooLarge ? .max : sum
    }
}

extension PrefetchJobs {
    /// The files that a job would fetch. The request is checked as for ``submit(_:idempotencyKey:)``, except for the number
    /// of unfinished items of other jobs. Lists are read as when their items run; a list that cannot be read fails the plan.
    ///
    /// Throws as `submit` and as ``UpstreamLister/select(_:origin:path:)``, whose limits are those of all lists of the request
    /// together.
    package func plan(_ order: CreateJobRequest) async throws(CacheError) -> JobPlan {
        try await plan(try await checked(order))
    }

    /// The files that a checked job would fetch.
    func plan(_ record: JobRecord) async throws(CacheError) -> JobPlan {
        try await withDeadline(UpstreamLister.timeout, .total, clock: prefetch.clock) {
            () async throws(CacheError) in
            try await read(record)
        }
    }

    private func read(_ record: JobRecord) async throws(CacheError) -> JobPlan {
        let lister = UpstreamLister(
            of: resolver.context, resolver: resolver, settings: prefetch.settings, clock: prefetch.clock)
        var (plan, totals, items) = (JobPlan(), UpstreamLister.Totals(), record.items.count)
        for item in record.items {
            guard item.list != nil else {
                plan.add(JobPlan.Entry(reference: item.reference, bytes: item.bytesTotal))
                continue
            }
            do throws(CacheError) {
                let found = try await lister.items(of: item, for: record.owner, totals: &totals)
                plan.skippedEntries += found.skippedEntries
                if let refusal = prefetch.limits.refusal(of: found.files.count, for: items) { throw refusal }
                items += found.files.count
                try await add(found.files, of: record.owner, to: &plan)
            } catch {
                throw located(error, at: item.index, of: record.items.count)
            }
        }
        return plan
    }

    /// The error of a list with the place of its item.
    private func located(_ error: CacheError, at index: Int, of count: Int) -> CacheError {
        if case .invalidField(let name) = error.code {
            return .invalid("items[\(index)].\(name == "origin" ? name : "list.\(name)")", error.message)
        }
        guard count > 1, error.code != .cancelled else { return error }
        var located = error
        let sentence = error.message.hasSuffix(".") ? error.message.dropLast() : error.message[...]
        located.message = sentence + " (items[\(index)])."
        return located
    }

    /// Adds the files of a list that the token permits. The catalog has the lengths of those that the listing states none for.
    private func add(
        _ files: [UpstreamLister.File], of owner: TokenOwner?, to plan: inout JobPlan
    ) async throws(CacheError) {
        let permitted = files.filter { file in
            guard let owner else { return true }
            return (try? owner.check(file.item.reference)) != nil
        }
        plan.skippedEntries += files.count - permitted.count
        let unknown = permitted.filter { $0.bytes == nil && $0.item.play == nil }.compactMap { target(of: $0)?.id }
        let sizes = try await catalog.sizes(of: Set(unknown))
        for file in permitted {
            // The bytes of a time span are unknown without the index.
            let stored = file.bytes ?? (sizes.isEmpty ? nil : target(of: file).flatMap { sizes[$0.id]?.length })
            plan.add(
                JobPlan.Entry(
                    reference: file.item.reference, bytes: file.item.play == nil ? stored : nil,
                    parent: file.item.parent))
        }
    }

    private func target(of file: UpstreamLister.File) -> AssetTarget? {
        guard case .mounted(let origin, let path, let key) = file.item.reference else { return nil }
        return try? resolver.mounted(origin, path, key: key)
    }
}
