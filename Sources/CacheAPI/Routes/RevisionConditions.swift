import CacheCore
import Hummingbird

/// The conditions of a request for a document with a revision (RFC 9110 §13.1.1, §13.1.2).
struct RevisionConditions {
    private enum Condition {
        case any
        case revisions([Int64])

        /// `isWeak`: weak tags count (RFC 9110 §8.8.3.2).
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

    /// Whether they hold for some revisions only: a change by another client in the meantime is an answer of 412 then.
    private var nameRevisions: Bool {
        if noneMatch != nil { return true }
        if case .revisions = match { return true }
        return false
    }

    /// Whether a GET of the document in this revision is answered with 304. Throws `.preconditionFailed`.
    func isNotModified(at revision: Int64) throws(CacheError) -> Bool {
        try checkMatch(revision)
        return noneMatch?.holds(revision) ?? false
    }

    /// The condition under which a change may be stored. `revision` is the present one, nil if the document does not exist.
    /// Throws `.preconditionFailed`.
    func precondition(at revision: Int64?) throws(CacheError) -> Precondition {
        try checkMatch(revision)
        if let noneMatch, noneMatch.holds(revision) {
            throw CacheError(.preconditionFailed, "The resource exists; If-None-Match forbids to replace it.")
        }
        guard nameRevisions else { return match == nil ? .none : .exists }
        return revision.map { .revision($0) } ?? .absent
    }

    /// Repeats `change`, which reads the document and stores it if it is in that revision still, until no other client has
    /// changed it in the meantime. With conditions that name revisions the first failure is the answer.
    func repeating<Value>(_ change: () async throws(CacheError) -> Value) async throws(CacheError) -> Value {
        while true {
            do throws(CacheError) {
                return try await change()
            } catch {
                guard error.code == .preconditionFailed, !nameRevisions else { throw error }
            }
        }
    }

    private func checkMatch(_ revision: Int64?) throws(CacheError) {
        guard let match, !match.holds(revision) else { return }
        let present = revision.map { "its ETag is \"\($0)\" now; read it again" } ?? "it does not exist"
        throw CacheError(.preconditionFailed, "If-Match does not match the resource: \(present).")
    }
}
