#include "CLinux.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#define LARDER_TARGET __attribute__((target("sse4.2")))
#define STEP(sum, word) ((uint32_t)_mm_crc32_u64((sum), (word)))
#define STEP_BYTE(sum, byte) _mm_crc32_u8((sum), (byte))
#elif defined(__aarch64__)
#include <sys/auxv.h>
#define LARDER_TARGET __attribute__((target("crc")))
#define STEP(sum, word) __builtin_arm_crc32cd((sum), (word))
#define STEP_BYTE(sum, byte) __builtin_arm_crc32cb((sum), (byte))
#endif

// The Castagnoli polynomial, bit-reversed (RFC 3720 §12.1).
#define POLYNOMIAL 0x82F63B78u

// Slicing-by-8: tables[k][b] is the effect of byte b on the sum, k bytes before the end of the word.
static uint32_t tables[8][256];
// Effect of LANE zero bytes on a sum, for each byte of the sum.
static uint32_t lane_tables[4][256];
static bool has_instruction;

// Bytes per stream. One instruction has to wait for the result of the previous one: three independent streams keep the
// processor busy.
#define LANE 4096

// The raw sum (without the inversions at start and end) by tables.
static uint32_t by_table(uint32_t sum, const uint8_t *bytes, size_t count) {
    for (; count >= 8; bytes += 8, count -= 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        word = __builtin_bswap64(word);
#endif
        word ^= sum;
        sum = 0;
        for (int place = 0; place < 8; place++) sum ^= tables[7 - place][(word >> (8 * place)) & 0xFF];
    }
    for (; count > 0; bytes++, count--) sum = tables[0][(sum ^ *bytes) & 0xFF] ^ (sum >> 8);
    return sum;
}

#ifdef LARDER_TARGET
// The sum after LANE more zero bytes; combines the sums of adjacent streams.
static uint32_t past_lane(uint32_t sum) {
    return lane_tables[0][sum & 0xFF] ^ lane_tables[1][(sum >> 8) & 0xFF] ^ lane_tables[2][(sum >> 16) & 0xFF]
        ^ lane_tables[3][sum >> 24];
}

static inline uint64_t word_at(const uint8_t *bytes) {
    uint64_t word;
    memcpy(&word, bytes, 8);
    return word;
}

// The raw sum by the processor's instruction.
LARDER_TARGET static uint32_t by_instruction(uint32_t sum, const uint8_t *bytes, size_t count) {
    for (; count >= 3 * LANE; bytes += 3 * LANE, count -= 3 * LANE) {
        uint32_t second = 0, third = 0;
        for (size_t at = 0; at < LANE; at += 8) {
            sum = STEP(sum, word_at(bytes + at));
            second = STEP(second, word_at(bytes + LANE + at));
            third = STEP(third, word_at(bytes + 2 * LANE + at));
        }
        sum = past_lane(past_lane(sum) ^ second) ^ third;
    }
    for (; count >= 8; bytes += 8, count -= 8) sum = STEP(sum, word_at(bytes));
    for (; count > 0; bytes++, count--) sum = STEP_BYTE(sum, *bytes);
    return sum;
}
#endif

// Fills the tables and detects the instruction when the program is loaded.
__attribute__((constructor)) static void prepare(void) {
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t sum = byte;
        for (int bit = 0; bit < 8; bit++) sum = (sum >> 1) ^ (sum & 1 ? POLYNOMIAL : 0);
        tables[0][byte] = sum;
    }
    for (int place = 1; place < 8; place++) {
        for (int byte = 0; byte < 256; byte++) {
            uint32_t before = tables[place - 1][byte];
            tables[place][byte] = tables[0][before & 0xFF] ^ (before >> 8);
        }
    }
    static const uint8_t zeros[LANE];
    for (int place = 0; place < 4; place++) {
        for (uint32_t byte = 0; byte < 256; byte++) {
            lane_tables[place][byte] = by_table(byte << (8 * place), zeros, LANE);
        }
    }
#if defined(__x86_64__)
    has_instruction = __builtin_cpu_supports("sse4.2");
#elif defined(__aarch64__)
    has_instruction = getauxval(AT_HWCAP) & (1 << 7);
#endif
}

bool larder_crc32c_has_instruction(void) { return has_instruction; }

uint32_t larder_crc32c_by_table(uint32_t sum, const void *bytes, size_t count) {
    return ~by_table(~sum, bytes, count);
}

uint32_t larder_crc32c(uint32_t sum, const void *bytes, size_t count) {
#ifdef LARDER_TARGET
    if (has_instruction) return ~by_instruction(~sum, bytes, count);
#endif
    return larder_crc32c_by_table(sum, bytes, count);
}
