/// Pure account of a limited total: the amounts that holders have of it. One holder can have a share of the total, and
/// a reserve is left to privileged holders.
package struct UsageLedger<Holder: Hashable & Sendable>: Sendable {
    /// The limits of a total. They can change while amounts are held; a reduction takes nothing back.
    package struct Limits: Hashable, Sendable {
        /// The maximum of all holders together.
        package var total: Int
        /// The maximum of one holder.
        package var share: Int
        /// The part of the total that only privileged holders get.
        package var reserve: Int

        package init(total: Int, share: Int, reserve: Int = 0) {
            self.total = total
            self.share = share
            self.reserve = reserve
        }
    }

    /// The limit that prevents a claim.
    package enum Refusal: Hashable, Sendable {
        /// The holder has its share.
        case share
        /// The total is used, or all of it but the reserve.
        case total
    }

    /// The sum of all amounts.
    package private(set) var used = 0
    /// The sum of the amounts of holders without privilege.
    private var ordinary = 0
    private var amounts: [Holder: Int] = [:]

    package init() {}

    /// Adds `amount` to a holder. Returns nil, or the limit that prevents it; then nothing changes.
    ///
    /// - Parameters:
    ///   - holder: Nil for a client without a token; such clients have no share.
    ///   - isPrivileged: Whether the holder may use the reserve. It must be the same when the amount is returned.
    package mutating func claim(_ amount: Int, by holder: Holder?, isPrivileged: Bool, of limits: Limits) -> Refusal? {
        if let holder, amounts[holder, default: 0] + amount > limits.share { return .share }
        guard used + amount <= limits.total else { return .total }
        guard isPrivileged || ordinary + amount <= limits.total - limits.reserve else { return .total }
        used += amount
        if !isPrivileged { ordinary += amount }
        if let holder { amounts[holder, default: 0] += amount }
        return nil
    }

    /// Returns an amount that the holder has.
    package mutating func giveBack(_ amount: Int, by holder: Holder?, isPrivileged: Bool) {
        used -= amount
        if !isPrivileged { ordinary -= amount }
        guard let holder, let held = amounts[holder] else { return }
        amounts[holder] = held > amount ? held - amount : nil
    }
}
