extension ContentPlan {
    /// This response as a fallback for another asset: type, length and body only, and `no-store`. It has no validators,
    /// so that no client or cache takes the bytes for those of the other asset. Nil unless it is a complete 200 without
    /// a content coding.
    package var standingIn: ContentPlan? {
        guard status == 200, headers["Content-Encoding"] == nil else { return nil }
        var plan = self
        plan.headers = ["Cache-Control": "no-store"]
        for name in ["Content-Type", "Content-Length"] {
            if let value = headers[name] { plan.headers.append(name, value) }
        }
        return plan
    }
}
