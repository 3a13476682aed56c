// Two programs in one: one listens at the block service of this host's node, one calls it through a
// peer.
//
//   cc -I include examples/local.c -L ../../target/release -lskyhaul_c -o local
//   ./local SOCKET PEER

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "skyhaul.h"

#define WAIT_MS 120000

/* Ends the program where a call did not do what it was asked for. */
static void must(skyhaul_code code, const char *what) {
    if (code != SKYHAUL_CODE_DONE) {
        const char *why = code == SKYHAUL_CODE_TIMED_OUT ? "timed out" : skyhaul_error();
        fprintf(stderr, "%s: %s\n", what, why);
        exit(1);
    }
}

int main(int count, char **arguments) {
    if (count != 3) {
        fprintf(stderr, "local SOCKET PEER\n");
        return 2;
    }
    // One listens under its name.
    skyhaul_local *screen;
    must(skyhaul_local_open(arguments[1], "screen", &screen), "open");
    must(skyhaul_local_listen(screen), "listen");

    // The other one calls it, and sends a block that must arrive within two minutes.
    skyhaul_local_call call = {
        .socket = arguments[1], .name = "camera", .peer = arguments[2], .program = "screen"};
    skyhaul_session *session, *caller;
    must(skyhaul_connect_local(&call, WAIT_MS, &session), "connect");
    must(skyhaul_local_accept(screen, WAIT_MS, &caller), "accept");
    // What a modem says of the node's first path to the peer: 20 Mbit/s for a minute.
    must(skyhaul_session_hint_rate(session, 0, 20000000, 60000), "hint");
    must(skyhaul_session_withdraw_hints(session, 0), "withdraw");
    static uint8_t pixels[100000];
    memset(pixels, 7, sizeof pixels);
    skyhaul_block frame = skyhaul_block_expendable(1, 120000, pixels, sizeof pixels);
    frame.class_name = "urgent";
    skyhaul_sent *sent;
    must(skyhaul_session_send(session, &frame, WAIT_MS, &sent), "send");

    // It waits with poll, beside whatever else it waits for.
    int descriptor;
    must(skyhaul_session_descriptor(caller, &descriptor), "descriptor");
    skyhaul_received *received;
    skyhaul_code code = skyhaul_session_recv(caller, 0, &received);
    while (code == SKYHAUL_CODE_TIMED_OUT) {
        struct pollfd ready = {.fd = descriptor, .events = POLLIN};
        if (poll(&ready, 1, WAIT_MS) != 1) {
            fprintf(stderr, "nothing came\n");
            return 1;
        }
        code = skyhaul_session_recv(caller, 0, &received);
    }
    must(code, "recv");
    skyhaul_arrival arrival;
    must(skyhaul_received_view(received, &arrival), "view");
    printf("%zu bytes in flow %u\n", arrival.len, arrival.name.flow);
    skyhaul_received_free(received);

    skyhaul_outcome outcome;
    must(skyhaul_sent_outcome(sent, WAIT_MS, &outcome), "outcome");
    printf("frame: %s\n", outcome == SKYHAUL_OUTCOME_DELIVERED ? "delivered" : "given up");
    skyhaul_sent_free(sent);

    skyhaul_session_close(session);
    skyhaul_session_close(caller);
    skyhaul_local_close(screen);
    return 0;
}
