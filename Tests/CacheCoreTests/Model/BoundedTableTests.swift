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

    @Test("The sum of the weights never exceeds the capacity")
    func weights() {
        var table = BoundedTable<Int, Int>(capacity: 100) { $0 }
        for number in 0..<500 {
            table[number % 70] = 1 + number % 50
            let sum = (0..<70).reduce(0) { sum, key in
                var copy = table
                return sum + (copy[key] ?? 0)
            }
            #expect(sum <= 100)
            #expect(table[number % 70] == 1 + number % 50)
        }
    }

    @Test("The selected entries of both generations are removed")
    func selection() {
        var table = BoundedTable<Int, Int>(capacity: 8)
        for number in 0..<6 { table[number] = number }
        table.removeAll { $0 % 2 == 0 }
        #expect((0..<6).map { table[$0] != nil } == [false, true, false, true, false, true])
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
