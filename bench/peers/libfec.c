/* How fast libfec decodes and encodes codewords of (255,223) in the dual basis.
 *
 * In: a letter an order: c decodes codewords without errors, d those with 1 to 16 errors, e encodes; v decodes the
 * convolutional code of rate 1/2 (K = 7) from soft symbols; q ends. Out: a line for each, nanoseconds a codeword, or a byte.
 * The codewords are in memory one by one, not interleaved: that is left out here. */
#include <fec.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { WORDS = 400, LENGTH = 255, DATA = 223 };

static unsigned char clean[WORDS][LENGTH], damaged[WORDS][LENGTH], work[WORDS][LENGTH];

static unsigned draw(unsigned bound)
{
    static uint64_t state = 0x5EED;
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (unsigned)((state * 0x2545F4914F6CDD1D) >> 33) % bound;
}

static void make(void)
{
    for (int word = 0; word < WORDS; word++) {
        for (int place = 0; place < DATA; place++)
            clean[word][place] = (unsigned char)draw(256);
        encode_rs_ccsds(clean[word], clean[word] + DATA, 0);
        memcpy(damaged[word], clean[word], LENGTH);
        /* Distinct places: a walk through all of them by a step without a factor of 255. */
        int errors = 1 + (int)draw(16), place = (int)draw(LENGTH);
        for (; errors > 0; errors--, place = (place + 97) % LENGTH)
            damaged[word][place] ^= (unsigned char)(1 + draw(255));
    }
}

static double nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

enum { BITS = 16384, TAIL = 6 };

static unsigned char bits[(BITS + TAIL) / 8 + 1], symbols[2 * (BITS + TAIL)], decoded[(BITS + TAIL) / 8 + 1];

/* Symbols of size 60 with noise of deviation 37, around 128. */
static void make_symbols(void)
{
    unsigned state = 0;
    for (int bit = 0; bit < BITS + TAIL; bit++) {
        unsigned next = bit < BITS ? draw(2) : 0;
        bits[bit / 8] |= (unsigned char)(next << (7 - bit % 8));
        state = (state << 1 | next) & 0x7F;
        int connections[2] = { 0x4F, 0x6D };
        for (int output = 0; output < 2; output++) {
            int noise = (int)(draw(256) + draw(256) + draw(256) + draw(256)) - 510;
            int symbol = 128 + (__builtin_parity(state & (unsigned)connections[output]) ? 60 : -60) + noise / 4;
            symbols[2 * bit + output] = (unsigned char)(symbol < 0 ? 0 : symbol > 255 ? 255 : symbol);
        }
    }
}

static int viterbi(void *decoder)
{
    double begun = nanoseconds();
    init_viterbi27(decoder, 0);
    update_viterbi27_blk(decoder, symbols, BITS + TAIL);
    chainback_viterbi27(decoder, decoded, BITS, 0);
    printf("%f\n", (nanoseconds() - begun) / (BITS / 8));
    fflush(stdout);
    int wrong = 0;
    for (int byte = 0; byte < BITS / 8; byte++)
        wrong += __builtin_popcount((unsigned)(decoded[byte] ^ bits[byte]));
    /* At this noise one bit in a million or less. */
    return wrong < 16;
}

int main(void)
{
    int order;
    make();
    make_symbols();
    int connections[2] = { 0x4F, 0x6D };
    set_viterbi27_polynomial(connections);
    void *decoder = create_viterbi27(BITS + TAIL);
    while ((order = getchar()) != EOF && order != 'q') {
        if (order == 'v') {
            if (!viterbi(decoder))
                return 1;
            continue;
        }
        memcpy(work, order == 'd' ? damaged : clean, sizeof work);
        double begun = nanoseconds();
        for (int word = 0; word < WORDS; word++) {
            if (order == 'e')
                encode_rs_ccsds(work[word], work[word] + DATA, 0);
            else if (decode_rs_ccsds(work[word], NULL, 0, 0) < 0)
                return 1;
        }
        printf("%f\n", (nanoseconds() - begun) / WORDS);
        fflush(stdout);
        if (memcmp(work, clean, sizeof work) != 0)
            return 1;
    }
    return 0;
}
