import COpenSSL
import CacheCore
import Cryptography
import Foundation
import TestChance
import Testing

@testable import CacheStore

@Suite struct FileCipherTests {
    private static let key = SymmetricKey(Array(0..<32))

    /// A file in an array, written through a cipher.
    private struct Model {
        let cipher = FileCipher(sealedKey: nil, key: FileCipherTests.key)
        var stored = [UInt8](repeating: 0, count: 1000)
        /// The plain bytes that are claimed.
        var plain: [Int64: UInt8] = [:]
        /// The key stream of each offset: the stored byte XOR the plain one, of each write.
        var streams: [Int64: [(call: Int, byte: UInt8)]] = [:]
        var calls = 0

        mutating func write(_ bytes: [UInt8], at offset: Int64, fails: Bool = false) throws {
            var parts: [(ByteRange, [UInt8], [UInt8])] = []
            let outcome = bytes.withUnsafeBytes { buffer in
                Result { () throws(CacheError) in
                    try cipher.write(buffer, at: offset) { (plain, sealed, start) throws(CacheError) in
                        parts.append((start..<start + Int64(plain.count), Array(plain), Array(sealed)))
                        if fails { throw CacheError(.storageFull, "The disk is full.") }
                        return true
                    }
                }
            }
            for (range, plain, sealed) in parts {
                calls += 1
                stored.replaceSubrange(Int(range.lowerBound)..<Int(range.upperBound), with: sealed)
                for (index, place) in range.enumerated() {
                    streams[place, default: []].append((calls, plain[index] ^ sealed[index]))
                    if !fails { self.plain[place] = plain[index] }
                }
            }
            if !fails { _ = try outcome.get() }
        }

        func read(_ range: ByteRange) throws -> [UInt8] {
            var bytes = [UInt8](repeating: 0, count: Int(range.length))
            let count = try bytes.withUnsafeMutableBytes { space in
                try Result { () throws(CacheError) in
                    try cipher.read(into: space, at: range.lowerBound) {
                        space.copyBytes(from: stored[Int(range.lowerBound)..<Int(range.upperBound)])
                        return space.count
                    }
                }.get()
            }
            #expect(count == bytes.count)
            return bytes
        }
    }

    /// The counter block is the cipher's own, so that the vectors of NIST SP 800-38A do not apply. The stream is compared
    /// with AES of each counter block.
    @Test("The stored bytes are the plain ones, XOR AES-256 of nonce and block number")
    func counterMode() throws {
        var model = Model()
        try model.write([UInt8](repeating: 0, count: 100), at: 37)
        let run = try #require(model.cipher.runs(in: [0..<1000]).first)
        #expect(run.range == 37..<137)
        let content = HashFunction.sha256.derivedKey(from: Self.key, for: "larder content")
        for offset in Int64(37)..<137 {
            let counter = [run.nonce.bigEndian, UInt64(offset / 16).bigEndian].withUnsafeBytes { Array($0) }
            let block = Self.encrypted(counter, with: content)
            #expect(model.stored[Int(offset)] == block[Int(offset % 16)])
        }
    }

    @Test("No part of the key stream encrypts two writes, and claimed bytes are not written again")
    func neverTwice() throws {
        for seed in UInt64(1)...20 {
            var (model, random) = (Model(), SeededRandom(seed: seed))
            for _ in 0..<80 {
                let start = Int64(random.next() % 900)
                let range = start..<min(1000, start + 1 + Int64(random.next() % 100))
                switch random.next() % 5 {
                case 0:
                    model.cipher.release([range])
                    for offset in range { model.plain[offset] = nil }
                    if random.next() % 2 == 0 { model.cipher.erase(range) }
                case 1:
                    let missing = range.filter { model.plain[$0] == nil }
                    try model.write((0..<range.count).map { _ in UInt8(random.next() % 256) }, at: start, fails: true)
                    for offset in range where !missing.contains(offset) { #expect(model.plain[offset] != nil) }
                default:
                    let before = model.plain
                    try model.write((0..<range.count).map { _ in UInt8(random.next() % 256) }, at: start)
                    for offset in range { if let byte = before[offset] { #expect(model.plain[offset] == byte) } }
                }
                for (offset, byte) in model.plain where random.next() % 4 == 0 {
                    #expect(try model.read(offset..<offset + 1) == [byte], "seed \(seed)")
                }
            }
            // Eight equal bytes of the stream at the same offsets are no accident.
            for offset in Int64(0)..<992 {
                var seen: Set<[UInt8]> = []
                for stream in model.streams[offset] ?? [] {
                    let word = (offset..<offset + 8).compactMap { place in
                        model.streams[place]?.first { $0.call == stream.call }?.byte
                    }
                    guard word.count == 8 else { continue }
                    #expect(seen.insert(word).inserted, "seed \(seed): the stream at \(offset) repeats")
                }
            }
        }
    }

    @Test("Missing bytes, and bytes without a key, are errors")
    func errors() throws {
        var model = Model()
        try model.write([1, 2, 3], at: 10)
        #expect(try model.read(10..<13) == [1, 2, 3])
        #expect(throws: CacheError.self) { try model.read(9..<13) }
        model.cipher.destroy()
        #expect(throws: CacheError.self) { try model.read(10..<13) }
        #expect(model.cipher.lock?.code == .encryptionKeyMissing)
    }

    @Test("Checksums depend on the key, the place and each byte")
    func sums() {
        let other = FileCipher(sealedKey: nil, key: SymmetricKey(Array(1..<33)))
        let cipher = Model().cipher
        let bytes = [UInt8](0..<64)
        func sum(_ cipher: FileCipher, _ bytes: [UInt8], _ offset: Int64) -> BlockSum {
            bytes.withUnsafeBytes { cipher.sum(of: $0, at: offset) }
        }
        let first = sum(cipher, bytes, 0)
        #expect(first == sum(cipher, bytes, 0))
        #expect(first != sum(other, bytes, 0) && first != sum(cipher, bytes, 1))
        for index in bytes.indices {
            var changed = bytes
            changed[index] ^= 1
            #expect(sum(cipher, changed, 0) != first)
        }
    }

    @Test("A sealed key opens only with its master key, for its file, and unchanged")
    func sealedKeys() throws {
        let master = MasterKey(id: "k1", key: Array(repeating: 7, count: 32))
        let sealed = try SealedKey(Self.key, of: 5, with: master)
        #expect(sealed.opened(with: master, of: 5).map(Self.bytes) == Array(0..<32))
        #expect(sealed.opened(with: master, of: 6) == nil)
        #expect(sealed.opened(with: MasterKey(id: "k2", key: Array(repeating: 7, count: 32)), of: 5) == nil)
        #expect(sealed.opened(with: MasterKey(id: "k1", key: Array(repeating: 8, count: 32)), of: 5) == nil)
        var random = SeededRandom(seed: 1)
        for length in 0...80 {
            var bytes = sealed.bytes.prefix(length)
            if length == sealed.bytes.count { bytes[Int(random.next() % UInt64(length))] ^= 1 }
            #expect(SealedKey(masterKey: "k1", bytes: Data(bytes)).opened(with: master, of: 5) == nil || length > 60)
        }
    }
}

extension FileCipherTests {
    fileprivate static func bytes(_ key: SymmetricKey) -> [UInt8] { key.withUnsafeBytes { Array($0) } }

    /// One block, encrypted with AES-256.
    fileprivate static func encrypted(_ block: [UInt8], with key: SymmetricKey) -> [UInt8] {
        let context = EVP_CIPHER_CTX_new()
        defer { EVP_CIPHER_CTX_free(context) }
        var (result, count) = ([UInt8](repeating: 0, count: 32), Int32(0))
        #expect(EVP_EncryptInit_ex2(context, EVP_aes_256_ecb(), bytes(key), nil, nil) == 1)
        #expect(EVP_EncryptUpdate(context, &result, &count, block, 16) == 1)
        return Array(result.prefix(16))
    }
}
