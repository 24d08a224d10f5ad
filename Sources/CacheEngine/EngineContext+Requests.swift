import CacheCore

extension EngineContext {
    /// A request to where `target` comes from, as its origin's settings and credentials say.
    func request(to target: AssetTarget, priority: TransferPriority) -> UpstreamRequest {
        let settings = target.settings
        let credentials = settings.credentialsFile.map { self.credentials.fields(of: $0) } ?? HeaderList()
        var request = UpstreamRequest(
            url: target.url,
            headers: [
                "Via": "1.1 larder",
                "CDN-Loop": [target.cdnLoop, loopName].compactMap(\.self).joined(separator: ", "),
            ],
            originHeaders: settings.headers.overlaid(by: credentials), originName: target.originName,
            timeouts: settings.timeouts, maxTransfers: settings.maxTransfers,
            originBytesPerSecond: settings.maxBytesPerSecond, priority: priority,
            allowPrivateAddresses: settings.allowPrivateAddresses, tls: settings.tls)
        for field in target.variant.fields { request.headers.append(field.name, field.value) }
        return request
    }
}

extension HeaderList {
    /// These fields, but those that `others` has in its own way.
    fileprivate func overlaid(by others: HeaderList) -> HeaderList {
        HeaderList(fields.filter { others[$0.name] == nil } + others.fields)
    }
}
