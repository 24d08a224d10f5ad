extension Generation {
    /// The representation a response's head describes, numbered 1.
    package static func described(
        by head: UpstreamHead, expecting: WindowExpectation, length: Int64?, acceptsRanges: Bool?
    ) -> Generation {
        let now = expecting.now
        let header = head.headers["Content-Type"].flatMap { FieldText.isValue($0) && !$0.isEmpty ? $0 : nil }
        let media = MediaType.effectiveType(header: header, path: expecting.path)
        let freshness = Freshness.of(head, now: now, settings: expecting.freshness)
        var described = Generation(
            length: length, contentType: media.type, contentTypeFrom: media.from,
            validators: Validators.of(head.headers, now: now), acceptsRanges: acceptsRanges,
            headers: StoredHeaders.dated(head, at: now), receivedAt: now, initialAge: freshness.initialAge,
            freshUntil: freshness.freshUntil,
            isStorable: expecting.storeRules.allow(
                type: media.type, length: length, isStorable: freshness.isStorable))
        described.firstHeaders = StoredHeaders.withheld(head.headers)
        return described
    }

    /// Whether bytes of both may stand in one file (RFC 9111 §3.4).
    ///
    /// Lengths, where both are known, must not differ, whatever is trusted. Beyond that: the same strong validator, tag
    /// before date; or what the administrator trusts instead.
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
        if let newTag = new.entityTag, let oldTag = old.entityTag {
            if newTag.matchesStrongly(oldTag) { return true }
            guard newTag.isWeak && oldTag.isWeak, newTag.matchesWeakly(oldTag) else { return false }
        }
        return hasEqualDates && new.lastModifiedIsStrong && old.lastModifiedIsStrong
    }

    /// Whether windows of it may be put together. Where not, its bytes come in one transfer from the first on, since
    /// nothing proves that two windows belong together.
    package func isJoinable(trusting trust: OriginSettings.TrustedValidators) -> Bool {
        isSameRepresentation(as: self, trusting: trust)
    }

    /// Whether both are described alike: by length, tag and date, as far as both have them.
    package func isDescribed(as known: Generation) -> Bool {
        let (old, new) = (known.validators, validators)
        return known.length ?? length == length && old.entityTag ?? new.entityTag == new.entityTag
            && old.lastModified ?? new.lastModified == new.lastModified
    }

    /// Whether weak validators say that it is `known`: enough to use a complete one (RFC 9110 §13.1.2), not to add to it.
    package func weaklyMatches(_ known: Generation) -> Bool {
        guard isDescribed(as: known) else { return false }
        let (old, new) = (known.validators, validators)
        return old.entityTag != nil && old.entityTag == new.entityTag
            || old.lastModified != nil && old.lastModified == new.lastModified
    }

    /// This description, without a body, in the place of `known`, the same representation: length and ranges stay as bodies
    /// have shown them.
    package func confirming(_ known: Generation) -> Generation {
        var merged = replacing(known)
        merged.length = known.length
        merged.acceptsRanges = known.acceptsRanges ?? acceptsRanges
        return merged
    }

    /// This description, of a whole response, in the place of `known`, the same representation.
    func replacing(_ known: Generation) -> Generation {
        var merged = self
        merged.number = known.number
        merged.length = length ?? known.length
        merged.acceptsRanges = acceptsRanges ?? known.acceptsRanges
        merged.validators = known.validators.completed(by: validators)
        return merged
    }

    /// This generation after a 206 with more of it, which may leave unsaid what a 200 would say (RFC 9110 §15.3.7): the
    /// fields it has replace the stored ones (RFC 9111 §3.4).
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

    /// This generation after a 304: fields the response names are replaced (RFC 9111 §3.2), freshness is counted anew
    /// from what then stands (§4.3.4).
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
        confirmed.initialAge = freshness.initialAge
        confirmed.freshUntil = freshness.freshUntil
        confirmed.isStorable = expecting.storeRules.allow(
            type: contentType, length: length, isStorable: freshness.isStorable)
        return confirmed
    }
}

extension Validators {
    /// The validators of a response: garbled ones are absent, and a date is strong where it is at least a minute older
    /// than the `Date` beside it (RFC 9110 §8.8.2.2).
    package static func of(_ headers: HeaderList, now: Timestamp) -> Validators {
        let modified = headers["Last-Modified"].flatMap { HTTPDate.parse($0, now: now) }
        let date = headers["Date"].flatMap { HTTPDate.parse($0, now: now) }
        let isStrong = if let modified, let date { date.since(modified) >= .seconds(60) } else { false }
        return Validators(
            entityTag: headers["ETag"].flatMap { EntityTag(FieldText.trimmed($0[...])) },
            lastModified: modified == nil ? nil : headers["Last-Modified"], lastModifiedIsStrong: isStrong)
    }

    /// These validators, and of `later` those that are missing here or stronger there.
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
