// What a program in C may do wrong, each told in a sentence; run by tests/programs.rs.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "skyhaul.h"

/* Ends the program where a call did not end as it should, or its sentence does not say what is to be said. */
static void expect(skyhaul_code code, skyhaul_code wanted, const char *word) {
    if (code != wanted || (word && !strstr(skyhaul_error(), word))) {
        fprintf(stderr, "code %d in place of %d, `%s` does not hold `%s`\n", code, wanted, skyhaul_error(), word);
        exit(1);
    }
}

int main(void) {
    char key[SKYHAUL_KEY_SIZE], print[SKYHAUL_FINGERPRINT_SIZE], address[64], small[3];
    skyhaul_node *node = NULL, *stranger = NULL;
    skyhaul_session *session = NULL, *caller = NULL;
    skyhaul_received *received = NULL;
    skyhaul_sent *sent = NULL;
    skyhaul_options options = {.name = "one", .key = key};

    expect(skyhaul_key_generate(small, sizeof small), SKYHAUL_CODE_MISUSED, "give an array of that size");
    expect(skyhaul_key_generate(key, sizeof key), SKYHAUL_CODE_DONE, NULL);
    expect(skyhaul_key_fingerprint("no key", print, sizeof print), SKYHAUL_CODE_MISUSED, "PRIVATE KEY");
    expect(skyhaul_key_fingerprint(NULL, print, sizeof print), SKYHAUL_CODE_MISUSED, "`pem` is NULL");
    expect(skyhaul_key_fingerprint(key, print, sizeof print), SKYHAUL_CODE_DONE, NULL);

    // What a node cannot be.
    const char *bind[] = {"127.0.0.1:0"}, *wrong[] = {"nowhere"}, *elsewhere[] = {"192.0.2.1:0"}, *trusted[] = {print};
    expect(skyhaul_node_start(NULL, &node), SKYHAUL_CODE_MISUSED, "`options` is NULL");
    options.bind = wrong, options.bind_count = 1;
    expect(skyhaul_node_start(&options, &node), SKYHAUL_CODE_MISUSED, "`nowhere` cannot be read");
    options.bind = elsewhere;
    expect(skyhaul_node_start(&options, &node), SKYHAUL_CODE_HOST, "cannot be bound");
    options.bind = bind, options.line = "fast";
    expect(skyhaul_node_start(&options, &node), SKYHAUL_CODE_MISUSED, "`fast`");
    options.line = "\xff\xfe";
    expect(skyhaul_node_start(&options, &node), SKYHAUL_CODE_MISUSED, "UTF-8");
    options.line = NULL, options.packet = 200;
    expect(skyhaul_node_start(&options, &node), SKYHAUL_CODE_MISUSED, "172");
    options.packet = 0;
    skyhaul_class orphan = {.name = "a", .parent = "nobody", .priority = -1};
    options.classes = &orphan, options.class_count = 1;
    expect(skyhaul_node_start(&options, &node), SKYHAUL_CODE_MISUSED, "nobody");
    options.classes = NULL, options.class_count = (size_t)-1;
    expect(skyhaul_node_start(&options, &node), SKYHAUL_CODE_MISUSED, "`classes`");
    options.class_count = 0, options.trusted = trusted, options.trusted_count = 1;
    expect(skyhaul_node_start(&options, NULL), SKYHAUL_CODE_MISUSED, "`out` is NULL");
    expect(skyhaul_node_start(&options, &node), SKYHAUL_CODE_DONE, NULL);
    expect(skyhaul_node_address(node, 1, address, sizeof address), SKYHAUL_CODE_MISUSED, "no socket 1");
    expect(skyhaul_node_address(node, 0, small, sizeof small), SKYHAUL_CODE_MISUSED, "needs");
    expect(skyhaul_node_address(node, 0, address, sizeof address), SKYHAUL_CODE_DONE, NULL);
    expect(skyhaul_node_accept(node, 0, &session), SKYHAUL_CODE_TIMED_OUT, NULL);

    // Calls that lead nowhere.
    skyhaul_path path = {.remote = address};
    skyhaul_call call = {.peer = print};
    expect(skyhaul_node_connect(node, &call, -1, &session), SKYHAUL_CODE_CLOSED, "no path");
    call.path_count = 1;
    expect(skyhaul_node_connect(node, &call, -1, &session), SKYHAUL_CODE_MISUSED, "`paths`");
    call.paths = &path, call.peer = "SHA256:00";
    expect(skyhaul_node_connect(node, &call, -1, &session), SKYHAUL_CODE_MISUSED, "SHA256:00");
    call.peer = print;
    char other_key[SKYHAUL_KEY_SIZE];
    expect(skyhaul_key_generate(other_key, sizeof other_key), SKYHAUL_CODE_DONE, NULL);
    skyhaul_options other = {.name = "other", .key = other_key};
    expect(skyhaul_node_start(&other, &stranger), SKYHAUL_CODE_DONE, NULL);
    expect(skyhaul_node_connect(stranger, &call, -1, &session), SKYHAUL_CODE_CLOSED, "closed");

    // Blocks that are none. The node calls itself.
    expect(skyhaul_node_connect(node, &call, -1, &session), SKYHAUL_CODE_DONE, NULL);
    expect(skyhaul_node_accept(node, -1, &caller), SKYHAUL_CODE_DONE, NULL);
    skyhaul_block block = skyhaul_block_reliable(0, NULL, 0);
    expect(skyhaul_session_send(session, &block, -1, &sent), SKYHAUL_CODE_MISUSED, "0 bytes");
    block.len = 4;
    expect(skyhaul_session_send(session, &block, -1, &sent), SKYHAUL_CODE_MISUSED, "`data`");
    block.data = (const uint8_t *)"four", block.class_name = "second";
    expect(skyhaul_session_send(session, &block, -1, &sent), SKYHAUL_CODE_MISUSED, "no class `second`");
    block.class_name = NULL, block.expendable = true;
    expect(skyhaul_session_send(session, &block, -1, &sent), SKYHAUL_CODE_MISUSED, "deadline");
    expect(skyhaul_session_send(NULL, &block, -1, &sent), SKYHAUL_CODE_MISUSED, "`session` is NULL");
    block.expendable = false;
    expect(skyhaul_session_send(session, &block, -1, NULL), SKYHAUL_CODE_DONE, NULL);
    expect(skyhaul_session_recv(caller, -1, &received), SKYHAUL_CODE_DONE, NULL);
    expect(skyhaul_session_recv(caller, 0, &received), SKYHAUL_CODE_TIMED_OUT, NULL);
    skyhaul_arrival arrival;
    expect(skyhaul_received_view(received, &arrival), SKYHAUL_CODE_DONE, NULL);
    if (arrival.len != 4 || memcmp(arrival.data, "four", 4) != 0) {
        return 1;
    }
    char name[8];
    expect(skyhaul_session_peer_name(caller, name, sizeof name), SKYHAUL_CODE_DONE, NULL);
    expect(skyhaul_session_peer(caller, print, sizeof print), SKYHAUL_CODE_DONE, NULL);
    size_t count;
    skyhaul_counters counters;
    expect(skyhaul_session_paths(session, NULL, 4, &count), SKYHAUL_CODE_MISUSED, "`out`");
    expect(skyhaul_session_counters(caller, &counters), SKYHAUL_CODE_DONE, NULL);
    expect(skyhaul_session_hint_rate(session, 9, 2000000, -1), SKYHAUL_CODE_MISUSED, "no path 9");
    expect(skyhaul_session_hint_loss(session, 0, 1000000001, 5000), SKYHAUL_CODE_MISUSED,
           "more than all");
    expect(skyhaul_session_hint_rate(session, 0, 1, -1), SKYHAUL_CODE_MISUSED, "out of range");
    expect(skyhaul_session_hint_loss(session, 0, 950000000, 5000), SKYHAUL_CODE_MISUSED,
           "out of range");
    expect(skyhaul_session_hint_loss(session, 0, 20000000, 5000), SKYHAUL_CODE_DONE, NULL);
    expect(skyhaul_session_withdraw_hints(session, 0), SKYHAUL_CODE_DONE, NULL);

    // A block of which the fate is not known when the node ends, and everything after that.
    expect(skyhaul_session_send(session, &block, -1, &sent), SKYHAUL_CODE_DONE, NULL);
    skyhaul_node_stop(node);
    skyhaul_outcome outcome;
    skyhaul_code code = skyhaul_sent_outcome(sent, -1, &outcome);
    if (code != SKYHAUL_CODE_CLOSED && code != SKYHAUL_CODE_DONE) {
        return 1;
    }
    expect(skyhaul_session_send(session, &block, -1, NULL), SKYHAUL_CODE_CLOSED, "stopped");
    skyhaul_received_free(received);
    skyhaul_received_free(NULL);
    skyhaul_sent_free(sent);
    skyhaul_session_close(session);
    skyhaul_session_close(caller);
    skyhaul_node_stop(stranger);
    skyhaul_node_stop(NULL);
    puts("everything was told");
    return 0;
}
