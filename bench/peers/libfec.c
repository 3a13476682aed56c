/* How fast libfec decodes and encodes codewords of (255,223) in the dual basis.
 *
 * In: a letter an order: c decodes codewords without errors, d those with 1 to 16 errors, e encodes; q ends. Out: a line for
 * each, nanoseconds a codeword. The codewords are in memory one by one, not interleaved: that is left out here. */
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

int main(void)
{
    int order;
    make();
    while ((order = getchar()) != EOF && order != 'q') {
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
