/// Rules for the members of an account that depend on each other.
extension OriginAuth {
    /// The first member whose value is missing, unusable or without effect; nil if there is none.
    ///
    /// `key`: the name of the member below `auth`, as in JSON documents. The message contains no secret.
    package var fault: (key: String, message: String)? {
        switch kind {
        case nil:
            guard self != OriginAuth() else { return nil }
            return ("type", "auth.type is required with other members of auth: s3, oauth2 or sas.")
        case .s3: return signatureFault
        case .oauth2: return unused(beside: .oauth2) ?? tokenFault
        case .sas: return unused(beside: .sas) ?? fileFault(of: "type sas")
        }
    }

    /// Whether a token endpoint or an STS endpoint may have this URL: https, or http on the machine itself. Requests to
    /// it contain secrets.
    package static func isPermittedEndpoint(_ url: String) -> Bool {
        guard let (scheme, host) = place(of: url) else { return false }
        return scheme == "https" || isLoopback(host: host)
    }

    /// Whether a metadata service may have this URL: https, or http on the machine itself or on the fixed addresses of
    /// the metadata services of AWS (EC2, ECS and EKS).
    package static func isPermittedMetadataURL(_ url: String) -> Bool {
        guard let (scheme, host) = place(of: url) else { return false }
        return scheme == "https" || isLoopback(host: host) || metadataHosts.contains(host)
    }

    /// Whether the host is the machine itself, by name or as a literal address without brackets.
    package static func isLoopback(host: String) -> Bool {
        if host == "localhost" || host == "::1" { return true }
        let parts = host.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts[0] == "127"
            && parts.allSatisfy { $0.utf8.allSatisfy(FieldText.isDigit) && UInt8($0) != nil }
    }

    /// The addresses of metadata services: EC2 over IPv4 and IPv6, ECS, and EKS over IPv4 and IPv6.
    package static let metadataHosts: Set<String> = [
        "169.254.169.254", "fd00:ec2::254", "169.254.170.2", "169.254.170.23", "fd00:ec2::23",
    ]

    /// The scheme and the host of an absolute URL in lower case, the host without brackets. Nil if it is no http or
    /// https URL with a host and an optional port, or contains a user or a fragment.
    private static func place(of url: String) -> (scheme: String, host: String)? {
        let base = url.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)[0]
        guard BaseURL.fault(in: String(base)) == nil, !url.contains("#"),
            url.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
        else { return nil }
        let parts = FieldText.lowered(base).split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false)
        let (scheme, authority) = (parts[0].dropLast(), parts[2])
        guard authority.first == "[" else { return (String(scheme), String(authority.prefix { $0 != ":" })) }
        return (String(scheme), String(authority.dropFirst().prefix { $0 != "]" }))
    }
}

// MARK: Signatures

extension OriginAuth {
    /// The source that gives the first keys: that of `assumeRole`'s signature, otherwise `credentials`.
    private var firstSource: CredentialSource { credentials == .assumeRole ? source : credentials }

    private var signatureFault: (key: String, message: String)? {
        for (key, value) in [("region", region), ("service", service)] where !Self.isName(value) {
            return (key, "auth.\(key) must have 1 to 64 letters, digits, hyphens and underscores.")
        }
        return unused(beside: .s3) ?? keyFault ?? fileRules ?? roleFault ?? endpointFault
    }

    private var keyFault: (key: String, message: String)? {
        guard source != .assumeRole else {
            return ("source", "auth.source must be another source than assumeRole, which signs the call itself.")
        }
        let keys = [
            ("accessKeyId", accessKeyID), ("secretAccessKey", secretAccessKey), ("sessionToken", sessionToken),
        ]
        guard firstSource == .static else {
            guard let (key, _) = keys.first(where: { $0.1 != nil }) else { return nil }
            return (key, "auth.\(key) is used with credentials static only; remove it or set auth.credentials.")
        }
        for (key, value) in keys.prefix(2) where value?.isEmpty ?? true {
            return (key, "auth.\(key) is required with credentials static.")
        }
        for (key, value) in keys where !(value?.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F } ?? true) {
            return (key, "auth.\(key) must be ASCII text without blanks.")
        }
        return nil
    }

    private var fileRules: (key: String, message: String)? {
        switch firstSource {
        case .file: return fileFault(of: "credentials file")
        // The environment can name the token file, too.
        case .webIdentity: return file == nil ? nil : fileFault(of: "credentials webIdentity")
        default:
            guard file != nil else { return nil }
            return ("file", "auth.file is not used with credentials \(firstSource.rawValue); remove it.")
        }
    }

    private var roleFault: (key: String, message: String)? {
        if credentials == .assumeRole, roleARN == nil {
            return ("roleArn", "auth.roleArn is required with credentials assumeRole.")
        }
        let hasRole = credentials == .assumeRole || credentials == .webIdentity
        if let roleARN {
            guard hasRole else {
                return ("roleArn", "auth.roleArn is used with credentials assumeRole and webIdentity only; remove it.")
            }
            guard roleARN.hasPrefix("arn:"), (20...2048).contains(roleARN.utf8.count) else {
                return ("roleArn", "auth.roleArn must be a resource name such as arn:aws:iam::123456789012:role/media.")
            }
        }
        guard (2...64).contains(roleSessionName.utf8.count), roleSessionName.utf8.allSatisfy(Self.isSessionNameByte)
        else {
            return ("roleSessionName", "auth.roleSessionName must have 2 to 64 letters, digits and _+=,.@-.")
        }
        guard let externalID else { return nil }
        guard credentials == .assumeRole else {
            return ("externalId", "auth.externalId is used with credentials assumeRole only; remove it.")
        }
        guard (2...1224).contains(externalID.utf8.count) else {
            return ("externalId", "auth.externalId must have 2 to 1224 characters.")
        }
        return nil
    }

    private var endpointFault: (key: String, message: String)? {
        if let stsURL, !Self.isPermittedEndpoint(stsURL) {
            return ("stsURL", "auth.stsURL must be an https URL; http is allowed on loopback addresses only.")
        }
        guard let metadataURL else { return nil }
        guard firstSource == .container || firstSource == .instance else {
            return ("metadataURL", "auth.metadataURL is used with credentials container and instance only; remove it.")
        }
        guard Self.isPermittedMetadataURL(metadataURL) else {
            return (
                "metadataURL",
                "auth.metadataURL must be an https URL; http is allowed on loopback and metadata addresses only."
            )
        }
        return nil
    }

    /// Whether the text can be a region or a service in a credential scope and in a host name.
    private static func isName(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count)
            && text.utf8.allSatisfy {
                FieldText.isLetter($0) || FieldText.isDigit($0) || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "_")
            }
    }

    private static func isSessionNameByte(_ byte: UInt8) -> Bool {
        FieldText.isLetter(byte) || FieldText.isDigit(byte) || "_+=,.@-".utf8.contains(byte)
    }
}

// MARK: Tokens and shared access signatures

extension OriginAuth {
    private var tokenFault: (key: String, message: String)? {
        if let fault = fileFault(of: "type oauth2") { return fault }
        if let tokenURL, !Self.isPermittedEndpoint(tokenURL) {
            return ("tokenURL", "auth.tokenURL must be an https URL; http is allowed on loopback addresses only.")
        }
        for (key, value) in [("scope", scope), ("audience", audience)] {
            guard let value else { continue }
            guard !value.isEmpty, value.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }) else {
                return (key, "auth.\(key) must be ASCII text without control characters.")
            }
        }
        return nil
    }

    /// The fault of `file` where it is required. `need`: the setting that requires it.
    private func fileFault(of need: String) -> (key: String, message: String)? {
        guard let file else { return ("file", "auth.file is required with \(need).") }
        guard OriginSettings.isInside(path: file) else {
            return (
                "file", "auth.file must be a relative path below credentialsDirectory, without . and .. components."
            )
        }
        return nil
    }

    /// The first member that has a value, but no effect for this kind of account.
    private func unused(beside kind: Kind) -> (key: String, message: String)? {
        let defaults = OriginAuth()
        var members: [(key: String, isSet: Bool)] = []
        if kind != .s3 {
            members += [
                ("accessKeyId", accessKeyID != nil), ("secretAccessKey", secretAccessKey != nil),
                ("sessionToken", sessionToken != nil), ("credentials", credentials != defaults.credentials),
                ("source", source != defaults.source), ("roleArn", roleARN != nil), ("externalId", externalID != nil),
                ("stsURL", stsURL != nil), ("metadataURL", metadataURL != nil),
            ]
        }
        if kind != .oauth2 {
            members += [
                ("grant", grant != defaults.grant), ("tokenURL", tokenURL != nil), ("scope", scope != nil),
                ("audience", audience != nil), ("scheme", scheme != defaults.scheme),
            ]
        }
        guard let key = members.first(where: \.isSet)?.key else { return nil }
        return (key, "auth.\(key) is not used with type \(kind.rawValue); remove it.")
    }
}
