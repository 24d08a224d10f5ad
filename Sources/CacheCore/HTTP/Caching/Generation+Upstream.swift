extension Generation {
    /// The generation, numbered 1, that a response head describes.
    package static func described(
        by head: UpstreamHead, expecting: WindowExpectation, length: Int64?, acceptsRanges: Bool?
    ) -> Generation {
        let now = expecting.now
        let header = head.headers["Content-Type"].flatMap { FieldText.isValue($0) && !$0.isEmpty ? $0 : nil }
        let media = MediaType.effectiveType(header: header, path: expecting.path)
        var freshness = Freshness.of(head, now: now, settings: expecting.freshness)
        // Otherwise nodes that copy from each other would never ask the upstream again.
        if expecting.isOfPeer, case .ttl(let lifetime) = expecting.freshness {
            freshness.freshUntil = now + (lifetime - freshness.initialAge)
        }
        var described = Generation(
            length: length, contentType: media.type, contentTypeFrom: media.from,
            validators: Validators.of(head.headers, now: now), acceptsRanges: acceptsRanges,
            headers: StoredHeaders.dated(head, at: now), receivedAt: now,
            isStorable: expecting.storeRules.allow(
                type: media.type, length: length, isStorable: freshness.isStorable))
        if head.status == 203 { described.status = 203 }
        described.firstHeaders = StoredHeaders.withheld(head.headers)
        return described.lasting(freshness, path: expecting.path).stale(if: expecting.isOutdated)
    }

    /// Without its freshness if `isOutdated`.
    private func stale(if isOutdated: Bool) -> Generation {
        var generation = self
        if isOutdated { generation.freshUntil = nil }
        return generation
    }

    /// Whether bytes of both generations may be combined in one file (RFC 9111 §3.4).
    ///
    /// Known lengths must be equal, whatever is trusted. In addition, both need the same strong validator, a tag before
    /// a date, or the equality that the administrator's `trust` accepts instead.
    package func isSameRepresentation(
        as known: Generation, trusting trust: OriginSettings.TrustedValidators
    ) -> Bool {
        if let length, let knownLength = known.length, length != knownLength { return false }
        guard passedStatus == nil, known.passedStatus == nil else { return false }
        let (new, old) = (validators, known.validators)
        let hasEqualDates = new.lastModified != nil && new.lastModified == old.lastModified
        switch trust {
        case .immutable: return true
        case .lengthAndLastModified where hasEqualDates && length != nil && length == known.length: return true
        case .lengthAndLastModified, .strong: break
        }
        return new.matchesStrongly(old)
    }

    /// Whether it is shorter than `known`, which has the same strong validator. One of both lengths is wrong
    /// (RFC 9110 §8.8.1).
    package func contradicts(_ known: Generation) -> Bool {
        guard let length, let knownLength = known.length else { return false }
        return length < knownLength && validators.matchesStrongly(known.validators)
    }

    /// Whether windows of this generation may be combined. If not, nothing proves that two windows belong together, so
    /// its bytes must come from a single transfer that starts at the first byte.
    package func isJoinable(trusting trust: OriginSettings.TrustedValidators) -> Bool {
        isSameRepresentation(as: self, trusting: trust)
    }

    /// Whether both have the same length, tag and date; a value that one of them lacks is not compared.
    package func isDescribed(as known: Generation) -> Bool {
        let (old, new) = (known.validators, validators)
        return known.length ?? length == length && old.entityTag ?? new.entityTag == new.entityTag
            && old.lastModified ?? new.lastModified == new.lastModified
    }

    /// Whether a weak validator identifies it as `known` (RFC 9110 §13.1.2). This suffices to reuse a complete copy,
    /// but not to add bytes to it.
    package func weaklyMatches(_ known: Generation) -> Bool {
        guard isDescribed(as: known) else { return false }
        let (old, new) = (known.validators, validators)
        return old.entityTag != nil && old.entityTag == new.entityTag
            || old.lastModified != nil && old.lastModified == new.lastModified
    }

    /// Replaces the metadata of `known`, the same representation, by this one from a response without a body. Length
    /// and range support stay as responses with a body have shown them.
    package func confirming(_ known: Generation) -> Generation {
        var merged = replacing(known)
        merged.length = known.length
        merged.acceptsRanges = known.acceptsRanges ?? acceptsRanges
        return merged
    }

    /// Replaces the metadata of `known`, the same representation, by this one from a response with the whole body.
    func replacing(_ known: Generation) -> Generation {
        var merged = self
        merged.number = known.number
        merged.length = length ?? known.length
        merged.acceptsRanges = acceptsRanges ?? known.acceptsRanges
        merged.validators = known.validators.completed(by: validators)
        return merged
    }

    /// This generation after a 206 with more of its bytes. A 206 may omit fields of a 200 (RFC 9110 §15.3.7), so only
    /// the fields that it has replace the stored ones (RFC 9111 §3.4).
    func continued(by found: Generation, _ head: UpstreamHead, _ expecting: WindowExpectation) -> Generation {
        var merged = confirmed(by: head, expecting: expecting)
        merged.length = found.length ?? length
        merged.acceptsRanges = found.acceptsRanges ?? acceptsRanges
        merged.validators = validators.completed(by: found.validators)
        if contentType == nil || (found.contentType != nil && found.contentTypeFrom == .header) {
            merged.contentType = found.contentType
            merged.contentTypeFrom = found.contentTypeFrom
        }
        return merged
    }

    /// This generation after a 304. Fields of the response replace the stored ones (RFC 9111 §3.2); freshness is
    /// computed again from the result (§4.3.4).
    func confirmed(by head: UpstreamHead, expecting: WindowExpectation) -> Generation {
        var stored = headers
        let fresh = StoredHeaders.dated(head, at: expecting.now)
        for name in Set(fresh.fields.map { FieldText.lowered($0.name) }) { stored.remove(name) }
        for field in fresh.fields { stored.append(field.name, field.value) }
        stored = StoredHeaders.of(stored)
        var asIfWhole = head
        asIfWhole.headers = stored
        if let age = head.headers["Age"] { asIfWhole.headers.append("Age", age) }
        if let modified = validators.lastModified { asIfWhole.headers.append("Last-Modified", modified) }
        let freshness = Freshness.of(asIfWhole, now: expecting.now, settings: expecting.freshness)
        var confirmed = self
        confirmed.headers = stored
        confirmed.receivedAt = expecting.now
        confirmed.isStorable = expecting.storeRules.allow(
            type: contentType, length: length, isStorable: freshness.isStorable)
        return confirmed.lasting(freshness, path: expecting.path).stale(if: expecting.isOutdated)
    }
}

extension Validators {
    /// Whether both have the same strong validator, a tag before a date: they identify one representation.
    func matchesStrongly(_ other: Validators) -> Bool {
        if let tag = entityTag, let otherTag = other.entityTag {
            if tag.matchesStrongly(otherTag) { return true }
            guard tag.isWeak && otherTag.isWeak, tag.matchesWeakly(otherTag) else { return false }
        }
        return lastModified != nil && lastModified == other.lastModified && lastModifiedIsStrong
            && other.lastModifiedIsStrong
    }

    /// The validators of a response; invalid ones count as absent. A date is strong if it is at least a minute older
    /// than the `Date` field (RFC 9110 §8.8.2.2).
    package static func of(_ headers: HeaderList, now: Timestamp) -> Validators {
        let modified = headers["Last-Modified"].flatMap { HTTPDate.parse($0, now: now) }
        let date = headers["Date"].flatMap { HTTPDate.parse($0, now: now) }
        let isStrong = if let modified, let date { date.since(modified) >= .seconds(60) } else { false }
        return Validators(
            entityTag: headers["ETag"].flatMap { EntityTag(FieldText.trimmed($0[...])) },
            lastModified: modified == nil ? nil : headers["Last-Modified"], lastModifiedIsStrong: isStrong)
    }

    /// These validators, completed by those of `later` that are missing here or stronger there.
    func completed(by later: Validators) -> Validators {
        var completed = self
        completed.entityTag = entityTag ?? later.entityTag
        if lastModified == nil || (lastModified == later.lastModified && later.lastModifiedIsStrong) {
            completed.lastModified = later.lastModified
            completed.lastModifiedIsStrong = later.lastModifiedIsStrong
        }
        return completed
    }
}
