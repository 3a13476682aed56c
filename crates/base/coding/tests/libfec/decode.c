/* Decodes Reed-Solomon codewords with libfec, from standard input to standard output.
 *
 * In: batches of a header (check symbols; 1 for the dual basis; virtual fill; 0; codewords as 32 bits, lowest byte
 * first) and the codewords without fill. Out: for each codeword what libfec returned (symbols corrected, 255 for
 * "uncorrectable") and the codeword as libfec left it. */
#include <fec.h>
#include <stdio.h>
#include <stdlib.h>

static void decode(unsigned char *word, int checks, int dual, int fill, void *code)
{
    int length = 255 - fill;
    int found = dual ? decode_rs_ccsds(word, NULL, 0, fill) : decode_rs_char(code, word, NULL, 0);
    putchar(found < 0 ? 255 : found);
    fwrite(word, 1, length, stdout);
}

int main(void)
{
    unsigned char header[8];
    while (fread(header, 1, sizeof header, stdin) == sizeof header) {
        int checks = header[0], dual = header[1], fill = header[2];
        unsigned long count = header[4] | header[5] << 8 | header[6] << 16 | (unsigned long)header[7] << 24;
        /* libfec has the dual basis for (255,223) alone. */
        if ((checks != 16 && checks != 32) || (dual && checks != 32) || fill + checks >= 255)
            return 2;
        void *code = init_rs_char(8, 0x187, 128 - checks / 2, 11, checks, fill);
        if (!code)
            return 2;
        for (; count > 0; count--) {
            unsigned char word[255];
            if (fread(word, 1, 255 - fill, stdin) != (size_t)(255 - fill))
                return 2;
            decode(word, checks, dual, fill, code);
        }
        free_rs_char(code);
        fflush(stdout);
    }
    return 0;
}
