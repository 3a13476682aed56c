// Two nodes in one program: a key frame, a frame that is worth nothing without it, and a message that must arrive.
//
//   cc -I include examples/blocks.c -L ../../target/release -lskyhaul_c -o blocks && ./blocks

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "skyhaul.h"

#define WAIT_MS 120000

/* Ends the program where a call did not do what it was asked for. */
static void must(skyhaul_code code, const char *what) {
    if (code != SKYHAUL_CODE_DONE) {
        fprintf(stderr, "%s: %s\n", what, code == SKYHAUL_CODE_TIMED_OUT ? "timed out" : skyhaul_error());
        exit(1);
    }
}

static const char *in_words(skyhaul_outcome outcome) {
    switch (outcome) {
    case SKYHAUL_OUTCOME_DELIVERED: return "delivered";
    case SKYHAUL_OUTCOME_EXPIRED: return "expired";
    default: return "cancelled";
    }
}

int main(void) {
    // Each end has a key, and knows the other's fingerprint.
    char near_key[SKYHAUL_KEY_SIZE], far_key[SKYHAUL_KEY_SIZE];
    char near_print[SKYHAUL_FINGERPRINT_SIZE], far_print[SKYHAUL_FINGERPRINT_SIZE];
    must(skyhaul_key_generate(near_key, sizeof near_key), "key");
    must(skyhaul_key_generate(far_key, sizeof far_key), "key");
    must(skyhaul_key_fingerprint(near_key, near_print, sizeof near_print), "fingerprint");
    must(skyhaul_key_fingerprint(far_key, far_print, sizeof far_print), "fingerprint");

    // The far end waits to be called, at a socket for each path.
    const char *bind[] = {"127.0.0.1:0", "127.0.0.1:0"};
    const char *trusted[] = {near_print};
    skyhaul_options far_options = {.name = "far", .key = far_key, .bind = bind, .bind_count = 2,
                                   .trusted = trusted, .trusted_count = 1};
    skyhaul_node *far;
    must(skyhaul_node_start(&far_options, &far), "far");

    // The near end calls it over both, and has two classes that share the line.
    skyhaul_class classes[] = {
        {.name = "frames", .guarantee = "2 Mbit/s", .priority = 0},
        {.name = "messages", .priority = -1},
    };
    skyhaul_options near_options = {.name = "near", .key = near_key, .classes = classes, .class_count = 2};
    skyhaul_node *near;
    must(skyhaul_node_start(&near_options, &near), "near");

    char addresses[2][64];
    skyhaul_path paths[2];
    memset(paths, 0, sizeof paths);
    for (size_t place = 0; place < 2; place++) {
        must(skyhaul_node_address(far, place, addresses[place], sizeof addresses[place]), "address");
        paths[place].remote = addresses[place];
    }
    skyhaul_call call = {.peer = far_print, .paths = paths, .path_count = 2};
    skyhaul_session *session, *caller;
    must(skyhaul_node_connect(near, &call, WAIT_MS, &session), "connect");
    must(skyhaul_node_accept(far, WAIT_MS, &caller), "accept");

    // A key frame of use for two minutes, and one that is worth nothing without it.
    static uint8_t pixels[60000];
    memset(pixels, 7, sizeof pixels);
    skyhaul_block frame = skyhaul_block_expendable(1, 120000, pixels, sizeof pixels);
    skyhaul_sent *key_frame, *next_frame, *message;
    must(skyhaul_session_send(session, &frame, WAIT_MS, &key_frame), "send");
    frame.len = 6000;
    frame.depends = true;
    must(skyhaul_sent_name(key_frame, WAIT_MS, &frame.depends_on), "name");
    must(skyhaul_session_send(session, &frame, WAIT_MS, &next_frame), "send");

    // A message that must arrive.
    const char *words = "all of it";
    skyhaul_block reliable = skyhaul_block_reliable(2, (const uint8_t *)words, strlen(words));
    reliable.class_name = "messages";
    must(skyhaul_session_send(session, &reliable, WAIT_MS, &message), "send");

    size_t bytes = 0;
    for (int block = 0; block < 3; block++) {
        skyhaul_received *received;
        skyhaul_arrival arrival;
        must(skyhaul_session_recv(caller, WAIT_MS, &received), "recv");
        must(skyhaul_received_view(received, &arrival), "view");
        if (arrival.name.flow == 2 && memcmp(arrival.data, words, arrival.len) != 0) {
            fprintf(stderr, "the message is another one\n");
            return 1;
        }
        bytes += arrival.len;
        skyhaul_received_free(received);
    }
    printf("%zu bytes in 3 blocks\n", bytes);

    skyhaul_sent *sent[] = {key_frame, next_frame, message};
    const char *names[] = {"key frame", "next frame", "message"};
    for (int block = 0; block < 3; block++) {
        skyhaul_outcome outcome;
        must(skyhaul_sent_outcome(sent[block], WAIT_MS, &outcome), "outcome");
        printf("%s: %s\n", names[block], in_words(outcome));
        skyhaul_sent_free(sent[block]);
    }

    skyhaul_path_report reports[2];
    size_t count;
    must(skyhaul_session_paths(session, reports, 2, &count), "paths");
    printf("%s calls over %zu path%s\n", "near", count, count == 1 ? "" : "s");

    skyhaul_session_close(session);
    skyhaul_session_close(caller);
    skyhaul_node_stop(near);
    skyhaul_node_stop(far);
    return 0;
}
