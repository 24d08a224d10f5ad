import CacheAPI
import CacheCore
import EtcdClient
import Foundation
import ReaderAccess

/// Reading and validation of the settings.
extension LarderSettings {
    /// Reads every setting. Precedence: `flags` (dotted name and text), `LARDER_…` variables, the file, defaults.
    ///
    /// `LARDER_TOKEN`, `LARDER_READ_TOKEN` and their `_FILE` forms are short for `LARDER_ACCESS_…`. Throws the first
    /// invalid setting.
    init(
        flags: [(name: String, text: String)] = [], environment: [String: String] = [:], file: ConfigurationFile? = nil
    ) throws(SettingsError) {
        try self.init(SettingsLayers(flags: flags, environment: environment, file: file))
    }

    /// Reads every setting from `layers`, and the files with tokens. Inherited sockets take the place of
    /// `listen.address`.
    init(_ layers: SettingsLayers, inherited: InheritedSockets? = nil) throws(SettingsError) {
        self.init()
        let (lookup, paths) = (layers.lookup, layers.paths)
        try lookup.read(LarderSettings.settings, into: &self)
        policy.tagQuotas = try Self.tagQuotas(namedBy: paths, in: lookup)
        origins = try Self.origins(namedBy: paths, in: lookup, like: urlOrigin)
        webhooks = try Self.webhooks(namedBy: paths, in: lookup)
        listen.inherited = inherited
        try readTokenFiles()
        try readFleetKeys()
        try readEtcdUser()
        try checkTogether()
    }

    /// Throws if the service is reachable from other machines without a token, unless `access.allowUnauthenticated` is
    /// set.
    func checkExposure() throws(SettingsError) {
        guard !access.hasReaders, !access.allowUnauthenticated else { return }
        if let exposed = listen.addresses.first(where: { !$0.isLoopback }) {
            throw SettingsError(
                "listen.address",
                "\"\(exposed)\" is reachable from other machines, but no token is set "
                    + "(set LARDER_TOKEN or LARDER_TOKEN_FILE, or pass --allow-unauthenticated)")
        }
    }

    /// The origins that flags and the file name, sorted by name. Variables alone create no origin. Each origin starts
    /// from `shared`, except for access and private addresses.
    private static func origins(
        namedBy paths: [SettingsPath], in lookup: SettingsLookup, like shared: OriginSettings
    ) throws(SettingsError) -> [Origin] {
        let named = paths.filter { $0.components.first == "origins" && $0.components.count > 1 }
        var origins: [Origin] = []
        for name in Set(named.map { $0.components[1] }).sorted() {
            var settings = shared
            settings.access = nil
            settings.allowPrivateAddresses = false
            try lookup.read(OriginSettings.settings, below: ["origins", name], into: &settings)
            let headers = named.filter {
                $0.components.starts(with: ["origins", name, "headers"]) && $0.components.count == 4
            }
            settings.headers = try Self.headers(at: headers, in: lookup)
            origins.append(Origin(name: name, settings: settings))
        }
        return origins
    }

    /// The origin's header fields. Throws if a value is invalid (RFC 9110 §5.5).
    private static func headers(
        at paths: [SettingsPath], in lookup: SettingsLookup
    ) throws(SettingsError) -> HeaderList {
        var headers = HeaderList()
        for path in paths {
            guard let name = path.components.last, let value = lookup.text(path) else { continue }
            guard FieldText.isValue(value) else {
                throw SettingsError(
                    path.dotted,
                    "is not a valid header field value: it contains control characters, or outer spaces or tabs")
            }
            headers.set(name, value)
        }
        return headers
    }

    /// Replaces configured token files by their content.
    private mutating func readTokenFiles() throws(SettingsError) {
        if let path = access.tokenFile {
            access.token = try Self.token(in: path, besides: access.token, key: "access.tokenFile")
        }
        if let path = access.readTokenFile {
            access.readToken = try Self.token(in: path, besides: access.readToken, key: "access.readTokenFile")
        }
    }

    /// Reads the keys of the nodes.
    private mutating func readFleetKeys() throws(SettingsError) {
        guard let path = fleet.keyFile else { return }
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else {
            throw SettingsError("fleet.keyFile", "\"\(path)\" cannot be read")
        }
        let keys = text.split(whereSeparator: \.isNewline).map { $0.trimmingCharacters(in: .whitespaces) }
            .filter { !$0.isEmpty }
        let isKey = { (key: String) in key.utf8.count >= 32 && key.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F } }
        guard !keys.isEmpty, keys.allSatisfy(isKey) else {
            throw SettingsError(
                "fleet.keyFile", "\"\(path)\" must have one key per line, each with at least 32 characters")
        }
        fleet.keys = keys.map { MaskedSecret($0) }
    }

    /// Reads the user of etcd.
    private mutating func readEtcdUser() throws(SettingsError) {
        guard let path = fleet.etcdCredentialsFile else { return }
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else {
            throw SettingsError("fleet.etcd.credentialsFile", "\"\(path)\" cannot be read")
        }
        let line = text.trimmingCharacters(in: .whitespacesAndNewlines)
        guard let colon = line.firstIndex(of: ":"), colon != line.startIndex, !line.contains(where: \.isNewline) else {
            throw SettingsError("fleet.etcd.credentialsFile", "\"\(path)\" must have the form user:password")
        }
        fleet.etcdUser = EtcdSettings.User(
            name: String(line[..<colon]), password: String(line[line.index(after: colon)...]))
    }

    /// Validates the settings of etcd.
    private func checkEtcd() throws(SettingsError) {
        guard !fleet.etcdEndpoints.isEmpty else {
            guard fleet.router == nil else { throw SettingsError("fleet.router", "requires fleet.etcd.endpoints") }
            return
        }
        guard !fleet.keys.isEmpty else {
            throw SettingsError("fleet.keyFile", "is required by fleet.etcd.endpoints")
        }
        if (fleet.etcdCertificateFile == nil) != (fleet.etcdKeyFile == nil) {
            let missing = fleet.etcdKeyFile == nil ? "keyFile" : "certificateFile"
            throw SettingsError("fleet.etcd.\(missing)", "is required by the other file of the certificate")
        }
        guard fleet.maxLag >= .seconds(5) else {
            throw SettingsError("fleet.maxLag", "must be at least 5s: the state is read every 3 s")
        }
    }

    /// Validates the settings of the fleet.
    private func checkFleet() throws(SettingsError) {
        try checkEtcd()
        if fleet.certificateFile != nil, fleet.certificateKeyFile == nil {
            throw SettingsError("fleet.tls.keyFile", "is required by fleet.tls.certificateFile")
        }
        if fleet.certificateKeyFile != nil, fleet.certificateFile == nil {
            throw SettingsError("fleet.tls.certificateFile", "is required by fleet.tls.keyFile")
        }
        if !fleet.peers.isEmpty, fleet.keys.isEmpty, fleet.certificateFile == nil {
            throw SettingsError("fleet.keyFile", "or fleet.tls.certificateFile is required by fleet.peers")
        }
        if !fleet.peerCertificates.isEmpty, listen.clientCAFile == nil {
            throw SettingsError("fleet.peerCertificates", "requires listen.tls.clientCAFile")
        }
    }

    /// The token in the file, without surrounding white space.
    private static func token(
        in path: String, besides given: MaskedSecret?, key: String
    ) throws(SettingsError) -> MaskedSecret {
        guard given == nil else {
            throw SettingsError(key, "cannot be combined with \(key.dropLast(4)); remove one of them")
        }
        let text: String
        do {
            text = try String(contentsOfFile: path, encoding: .utf8)
        } catch {
            throw SettingsError(key, "\"\(path)\" cannot be read")
        }
        let token = text.trimmingCharacters(in: .whitespacesAndNewlines)
        guard !token.isEmpty else { throw SettingsError(key, "\"\(path)\" is empty") }
        return MaskedSecret(token)
    }

    /// Validates settings that depend on each other.
    func checkTogether() throws(SettingsError) {
        try checkEncryption()
        if listen.certificateFile != nil, listen.keyFile == nil {
            throw SettingsError("listen.tls.keyFile", "is required by listen.tls.certificateFile")
        }
        if listen.keyFile != nil, listen.certificateFile == nil {
            throw SettingsError("listen.tls.certificateFile", "is required by listen.tls.keyFile")
        }
        try checkProxies()
        if let token = access.token, token == access.readToken {
            throw SettingsError("access.readToken", "must differ from access.token")
        }
        try checkReaders()
        try checkFleet()
        try checkWebhooks()
        try checkDirectories()
    }

    /// Statements of proxies count only if they come from a known address. A Unix socket needs none: only permitted
    /// processes can connect.
    /// Throws if a key has no valid identifier, or an encrypted origin cannot have a master key.
    private func checkEncryption() throws(SettingsError) {
        guard encryption.activeKey.map({ TokensFile.isIdentifier($0) }) ?? true else {
            throw SettingsError(
                "encryption.activeKey", "has 1 to 64 of the characters A-Z, a-z, 0-9, '.', '_' and '-'")
        }
        guard encryption.keyCommand.isEmpty || encryption.activeKey != nil else {
            throw SettingsError("encryption.activeKey", "is required with encryption.keyCommand")
        }
        guard !encryption.hasKeys, let origin = origins.first(where: \.settings.isEncrypted) else { return }
        throw SettingsError(
            "origins.\(origin.name).encrypt", "requires encryption.keysDirectory or encryption.keyCommand")
    }

    private func checkProxies() throws(SettingsError) {
        guard listen.trustedProxies.isEmpty, listen.addresses.contains(where: \.isInternet) else { return }
        let needing =
            listen.proxyProtocol == .required
            ? "listen.proxyProtocol" : listen.clientAddressFrom != .connection ? "listen.clientAddressFrom" : nil
        if let needing { throw SettingsError("listen.trustedProxies", "is required by \(needing)") }
    }

    /// Validates the settings of client certificates and JSON Web Tokens.
    private func checkReaders() throws(SettingsError) {
        if listen.clientCAFile != nil, listen.certificateFile == nil {
            throw SettingsError("listen.tls.clientCAFile", "requires listen.tls.certificateFile")
        }
        let jwt = access.jwt
        if jwt.keysFile != nil, jwt.keysURL != nil {
            throw SettingsError("access.jwt.jwksURL", "cannot be combined with access.jwt.jwksFile; remove one of them")
        }
        if !jwt.isEnabled, jwt.issuer != nil || jwt.audience != nil {
            let key = jwt.issuer != nil ? "access.jwt.issuer" : "access.jwt.audience"
            throw SettingsError(key, "requires access.jwt.jwksFile or access.jwt.jwksURL")
        }
        if jwt.isEnabled, jwt.algorithms.isEmpty {
            throw SettingsError("access.jwt.algorithms", "must name at least one algorithm")
        }
    }

    /// A file name of an origin requires the directory that contains it.
    private func checkDirectories() throws(SettingsError) {
        for origin in origins {
            if origin.settings.credentialsFile != nil, credentialsDirectory == nil {
                throw SettingsError("origins.\(origin.name).credentialsFile", "requires credentialsDirectory")
            }
            if case .file = origin.settings.fallback, fallbackDirectory == nil {
                throw SettingsError("origins.\(origin.name).fallback.file", "requires fallbackDirectory")
            }
        }
    }
}
