import CacheCore
import TestChance
import Testing

struct BoundedTableTests {
    @Test("The table never exceeds its capacity, and keeps the entries that are used")
    func bound() {
        var table = BoundedTable<Int, Int>(capacity: 100)
        for number in 0..<1000 {
            table[number] = number
            #expect(table[0] == 0)
            #expect(table.count <= 100)
        }
        #expect(table[999] == 999)
        #expect(table[500] == nil)
    }

    @Test("The last half of the capacity is always present")
    func recent() {
        var table = BoundedTable<Int, Int>(capacity: 100)
        for number in 0..<1000 { table[number] = number }
        for number in 950..<1000 { #expect(table[number] == number) }
    }

    @Test("Values are replaced and removed in both generations")
    func replacement() {
        var table = BoundedTable<Int, Int>(capacity: 4)
        for number in 0..<3 { table[number] = number }
        table[0] = 10
        #expect(table[0] == 10)
        table[1] = nil
        #expect(table[1] == nil)
        #expect(table[2] == 2)
        table.removeAll()
        #expect(table.count == 0)
        #expect(table[2] == nil)
    }

    @Test("Random use agrees with a dictionary for all entries that are present")
    func random() {
        var (random, seed) = SeededRandom.announced()
        var table = BoundedTable<Int, Int>(capacity: 16)
        var model: [Int: Int] = [:]
        for step in 0..<20_000 {
            let key = Int.random(in: 0..<40, using: &random)
            switch Int.random(in: 0..<3, using: &random) {
            case 0:
                table[key] = step
                model[key] = step
                #expect(table[key] == step, "seed \(seed)")
            case 1:
                table[key] = nil
                model[key] = nil
                #expect(table[key] == nil, "seed \(seed)")
            default: if let value = table[key] { #expect(model[key] == value, "seed \(seed)") }
            }
            #expect(table.count <= 16, "seed \(seed)")
        }
    }
}
