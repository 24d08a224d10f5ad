import CacheCore
import CacheEngine
import HTTPTypes
import Logging
import ReaderAccess

/// Routes for tokens. Those of the configuration and of the tokens file are shown; those of the API are made, changed and
/// deleted here. A limited reader sees and changes those inside its limits.
struct TokenController: Controller {
    let cache: AssetCache
    let live: LiveAPISettings
    let random: any RandomSource
    let wallClock: any WallClock
    let logger: Logger

    private static let (list, mostBytes) = ("tokens", 64 << 10)
    private var directory: ReaderDirectory { live.values.access.directory }

    static let routes: [Route<Self>] = [
        Route(.get, "/v1/tokens", .scope(.admin), readsQuery: true, limits: .checked) { try $0.page($1, $2) },
        Route(.post, "/v1/tokens", .scope(.admin), limits: .checked) { try await $0.make($1, $2) },
        Route(.get, "/v1/tokens/{tokenId}", .scope(.admin), limits: .checked) { controller, request, context in
            let (token, now) = (try controller.find(context), controller.wallClock.now())
            guard token.source == .api, let revision = controller.cache.configuration.token(token.reader.id)?.revision
            else {
                return .json(TokenDocument(token, at: now))
            }
            return try .revised(TokenDocument(token, at: now), revision, to: request)
        },
        Route(.patch, "/v1/tokens/{tokenId}", .scope(.admin), limits: .checked) { try await $0.change($1, $2) },
        Route(.delete, "/v1/tokens/{tokenId}", .scope(.admin), limits: .checked) { try await $0.delete($1, $2) },
    ]

    // MARK: Reading

    private func page(_ request: Request, _ context: APIContext) throws -> Response {
        let query = try request.query(accepting: ["limit", "cursor"])
        let (limit, now) = (try query.limit(), wallClock.now())
        let last = try query.string("cursor").map { text throws(CacheError) in try PageCursor(text, list: Self.list) }
        let visible = directory.tokens.filter { Self.isVisible($0.reader, to: context.reader) }
        let rest = visible.drop { token in
            last.map { (token.reader.id, Int64(token.source.rawValue)) <= ($0.tie, $0.value) } ?? false
        }
        let page = rest.prefix(limit)
        let next = page.count < rest.count ? page.last : nil
        return .page(
            page.map { TokenDocument($0, at: now) },
            next: next.map { PageCursor(list: Self.list, value: Int64($0.source.rawValue), tie: $0.reader.id).text })
    }

    private static func isVisible(_ token: Reader, to reader: Reader?) -> Bool {
        reader.map { !$0.isLimited || $0.limits.confine(token.limits) } ?? true
    }

    /// The token in the path that is in force. Throws `.notFound`; a limited reader does not learn which tokens outside its
    /// limits exist.
    private func find(_ context: APIContext) throws(CacheError) -> ListedToken {
        let id = try context.parameter("tokenId")
        let found = directory.tokens.filter { $0.reader.id == id }
        guard let token = found.first(where: { !$0.isOverridden }) ?? found.first,
            Self.isVisible(token.reader, to: context.reader)
        else { throw Self.missing(id, for: context.reader) }
        return token
    }

    private static func missing(_ id: String, for reader: Reader?) -> CacheError {
        if let reader, reader.isLimited { return reader.refusal("this token") }
        return CacheError(.notFound, "There is no token named \(id).")
    }

    // MARK: Changes

    private func make(_ request: Request, _ context: APIContext) async throws -> Response {
        guard !live.values.access.isOpen else {
            throw CacheError(
                .conflict,
                "The service requires no token yet, and the first one would lock everyone else out: set access.token or access.tokensFile before."
            )
        }
        try await cache.readDesiredState()
        let secret = random.identifier() + random.identifier()
        let entry = try await request.json(upTo: Self.mostBytes) { json, _ in
            try TokensFile.Entry(request: json, digest: TokenDigest(of: secret))
        }
        let (id, now) = (entry.reader.id, wallClock.now())
        try check(entry.reader, for: context.reader)
        guard !directory.tokens.contains(where: { $0.reader.id == id }) else {
            throw CacheError(.conflict, "There is a token named \(id): choose another id.")
        }
        let token = APIToken(entry: entry, createdAt: now, createdBy: context.reader?.id)
        let revision: Int64
        do throws(CacheError) {
            revision = try await cache.setToken(id, token.document, if: .absent)
        } catch {
            guard error.code == .preconditionFailed else { throw error }
            throw CacheError(.conflict, "There is a token named \(id): choose another id.", cause: error)
        }
        log("token made", id, context)
        var headers = Response.entityTag(revision)
        headers[.location] = "/v1/tokens/\(id)"
        return .json(TokenDocument(token, at: now, secret: secret), status: .created, headers: headers)
    }

    /// Applies a merge patch. Without conditions, concurrent changes are both kept.
    private func change(_ request: Request, _ context: APIContext) async throws -> Response {
        let (id, conditions) = (try context.parameter("tokenId"), RevisionConditions(request))
        try await cache.readDesiredState()
        _ = try stored(id, for: context.reader)
        let patch = try await request.json(upTo: Self.mostBytes, types: Request.mergePatchTypes) { json, _ in json }
        let (token, revision) = try await conditions.repeating { () async throws(CacheError) in
            var (token, revision) = try stored(id, for: context.reader)
            _ = try conditions.precondition(at: revision)
            token.entry = try token.entry.merging(patch)
            try check(token.entry.reader, for: context.reader)
            revision = try await cache.setToken(id, token.document, if: .revision(revision))
            return (token, revision)
        }
        log("token changed", id, context)
        return .json(TokenDocument(token, at: wallClock.now()), headers: Response.entityTag(revision))
    }

    private func delete(_ request: Request, _ context: APIContext) async throws -> Response {
        let (id, conditions) = (try context.parameter("tokenId"), RevisionConditions(request))
        try await cache.readDesiredState()
        try await conditions.repeating { () async throws(CacheError) in
            let revision = try stored(id, for: context.reader).revision
            _ = try conditions.precondition(at: revision)
            try await cache.deleteToken(id, if: .revision(revision))
        }
        log("token deleted", id, context)
        return Response(status: .noContent)
    }

    /// The token of the API with this name. Throws `.conflict` for one of another source.
    private func stored(_ id: String, for reader: Reader?) throws(CacheError) -> (token: APIToken, revision: Int64) {
        if let stored = cache.configuration.token(id) {
            let token = try APIToken(document: stored.document)
            guard Self.isVisible(token.entry.reader, to: reader) else { throw Self.missing(id, for: reader) }
            return (token, stored.revision)
        }
        guard let other = directory.tokens.first(where: { $0.reader.id == id && $0.source != .api }),
            Self.isVisible(other.reader, to: reader)
        else { throw Self.missing(id, for: reader) }
        let place = other.source == .file ? "the tokens file" : "the configuration"
        throw CacheError(.conflict, "The token \(id) is one of \(place): change it there.")
    }

    /// Throws `.tokenScope` if a new or changed token would have more rights than its maker, and `.invalidField` for one that
    /// has already ended.
    private func check(_ token: Reader, for reader: Reader?) throws(CacheError) {
        if let end = token.expiresAt, end <= wallClock.now() {
            throw .invalid("expiresAt", "The token would have ended already: choose a later instant.")
        }
        if let reader, let member = reader.member(exceededBy: token) {
            throw CacheError(
                .tokenScope,
                "The token \(reader.id) cannot make one with more rights than its own: restrict \(member).")
        }
    }

    private func log(_ message: Logger.Message, _ id: String, _ context: APIContext) {
        logger.notice(message, metadata: ["token": "\(id)", "by": "\(context.reader?.id ?? "")"])
    }
}
