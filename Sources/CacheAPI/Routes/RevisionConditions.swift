import CacheCore
import HTTPTypes

/// The conditions of a request for a document with a revision: `If-Match` and `If-None-Match` (RFC 9110 §13.1.1,
/// §13.1.2).
///
/// The entity tag of a document is its revision number. This gives optimistic concurrency control: a change is stored
/// only if no other client has changed the document meanwhile.
struct RevisionConditions {
    /// The value of one field.
    private enum Condition {
        /// `*`: any existing document.
        case any
        case revisions([Int64])

        /// Parses a field's value. Entity tags that are not a revision number never match.
        ///
        /// - Parameter isWeak: Whether weak tags count (weak comparison, RFC 9110 §8.8.3.2).
        init(_ field: String, isWeak: Bool) {
            let members = FieldText.members(of: field, escapes: false)
            self =
                members == ["*"]
                ? .any
                : .revisions(
                    members.compactMap { member in
                        EntityTag(member).flatMap { $0.isWeak && !isWeak ? nil : Int64($0.opaque) }
                    })
        }

        /// Whether the condition names this revision; nil is a missing document, which never matches.
        func holds(_ revision: Int64?) -> Bool {
            guard let revision else { return false }
            switch self {
            case .any: return true
            case .revisions(let revisions): return revisions.contains(revision)
            }
        }
    }

    private let match: Condition?
    private let noneMatch: Condition?

    init(_ request: Request) {
        match = request.headers[.ifMatch].map { Condition($0, isWeak: false) }
        noneMatch = request.headers[.ifNoneMatch].map { Condition($0, isWeak: true) }
    }

    /// Whether the conditions hold for certain revisions only. A concurrent change then results in 412.
    private var nameRevisions: Bool {
        if noneMatch != nil { return true }
        if case .revisions = match { return true }
        return false
    }

    /// Whether a GET of the document in this revision gets 304. Throws `.preconditionFailed` if `If-Match` does not
    /// hold.
    func isNotModified(at revision: Int64) throws(CacheError) -> Bool {
        try checkMatch(revision)
        return noneMatch?.holds(revision) ?? false
    }

    /// Returns the condition under which a change may be stored.
    ///
    /// - Parameter revision: The current revision; nil if the document does not exist.
    /// - Throws: `.preconditionFailed` if the request's conditions do not hold for that revision.
    func precondition(at revision: Int64?) throws(CacheError) -> Precondition {
        try checkMatch(revision)
        if let noneMatch, noneMatch.holds(revision) {
            throw CacheError(.preconditionFailed, "The resource exists, and If-None-Match forbids replacing it.")
        }
        guard nameRevisions else { return match == nil ? .none : .exists }
        return revision.map { .revision($0) } ?? .absent
    }

    /// Runs `change` until it succeeds without interference.
    ///
    /// `change` reads the document and stores it under the condition that its revision is unchanged. After a concurrent
    /// change it fails with `.preconditionFailed` and is repeated. With conditions that name revisions the first
    /// failure is thrown.
    func repeating<Value>(_ change: () async throws(CacheError) -> Value) async throws(CacheError) -> Value {
        while true {
            do throws(CacheError) {
                return try await change()
            } catch {
                guard error.code == .preconditionFailed, !nameRevisions else { throw error }
            }
        }
    }

    /// Throws `.preconditionFailed` if `If-Match` does not hold for the revision.
    private func checkMatch(_ revision: Int64?) throws(CacheError) {
        guard let match, !match.holds(revision) else { return }
        let present = revision.map { "its ETag is \"\($0)\" now; read it again" } ?? "it does not exist"
        throw CacheError(.preconditionFailed, "If-Match does not match the resource: \(present).")
    }
}
