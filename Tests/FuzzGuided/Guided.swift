import FuzzSurfaces
import Glibc

/// Replaces libFuzzer's own main; the package manager links the executable's main under this name.
@_cdecl("LarderGuidedFuzz_main")
public func start(_ count: CInt, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?) -> CInt {
    var (count, arguments) = (count, arguments)
    return run(&count, &arguments, takeOne)
}

@_silgen_name("LLVMFuzzerRunDriver")
private func run(
    _ count: UnsafeMutablePointer<CInt>,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?>,
    _ take: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
) -> CInt

/// The entry point of libFuzzer for each input: the first byte selects the surface for the rest.
///
/// A violated invariant traps; libFuzzer then records the input.
@_cdecl("LLVMFuzzerTestOneInput")
public func takeOne(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let input = UnsafeBufferPointer(start: bytes, count: count)
    guard let first = input.first else { return 0 }
    let surface = Surface.all[Int(first) % Surface.all.count]
    precondition(surface.take(Array(input.dropFirst())), surface.name)
    return 0
}

/// Called once at the start: writes the valid inputs of each surface to the directory in `LARDER_FUZZ_SEEDS`.
@_cdecl("LLVMFuzzerInitialize")
public func begin(_ count: UnsafeMutableRawPointer?, _ arguments: UnsafeMutableRawPointer?) -> CInt {
    guard let directory = getenv("LARDER_FUZZ_SEEDS").map({ String(cString: $0) }) else { return 0 }
    for (number, surface) in Surface.all.enumerated() {
        for (place, seed) in surface.seeds.enumerated() {
            guard let file = fopen("\(directory)/seed-\(number)-\(place)", "w") else { continue }
            let bytes = [UInt8(number)] + seed
            fwrite(bytes, 1, bytes.count, file)
            fclose(file)
        }
    }
    return 0
}
