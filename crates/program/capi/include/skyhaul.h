// Skyhaul for programs in C: blocks with deadlines, priorities and dependencies between two nodes.
//
// Who owns what:
//   - What a function gives out through a `**out` argument is the caller's, until it goes back through the
//     function that ends it: skyhaul_node_stop, skyhaul_local_close, skyhaul_session_close,
//     skyhaul_sent_free, skyhaul_received_free. These take NULL, too. Nothing else of what is handed out is freed.
//   - What a function takes (texts, arrays, a block's bytes) is the caller's, is read before the function returns, and may
//     be changed or freed then. Texts are UTF-8 and end with a zero.
//   - Text is written into arrays of the caller, whose sizes are given; what does not fit is refused, not cut.
//   - A session outlives nothing: end its blocks and itself before its node. After skyhaul_node_stop its sessions still
//     have to be closed; they say SKYHAUL_CODE_CLOSED.
//
// Threads: any function may be called by any thread at any time, for the same object, too, but for
// the five that end an object: nobody else may be using it then. A function that waits blocks its
// thread alone.
//
// Times to wait are in milliseconds: negative for as long as it takes, 0 to look without waiting.
//
// Errors: each function that can fail gives a code, and for any but SKYHAUL_CODE_DONE and SKYHAUL_CODE_TIMED_OUT a
// sentence (what was wrong, what to do), which skyhaul_error() gives to the same thread. `out` is left alone then.
//
// This file is made of the sources of the crate `capi`; a test holds it to them.


#ifndef SKYHAUL_H
#define SKYHAUL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Bytes that are enough for a private key as text.
#define SKYHAUL_KEY_SIZE 512

// Bytes that are enough for a fingerprint.
#define SKYHAUL_FINGERPRINT_SIZE 72

// The result of a call, by who must act.
typedef enum skyhaul_code {
  // The call succeeded.
  SKYHAUL_CODE_DONE = 0,
  // The time ran out; nothing was changed.
  SKYHAUL_CODE_TIMED_OUT = 1,
  // The session or the node has ended, or the far end did not answer or refused.
  SKYHAUL_CODE_CLOSED = 2,
  // An argument is wrong: the sentence names it.
  SKYHAUL_CODE_MISUSED = 3,
  // The host failed: a socket, memory, random numbers.
  SKYHAUL_CODE_HOST = 4,
} skyhaul_code;

// The outcome of a block.
typedef enum skyhaul_outcome {
  // The far end has all of it.
  SKYHAUL_OUTCOME_DELIVERED = 0,
  // Its deadline passed before, or the deadline of a block that it depends on.
  SKYHAUL_OUTCOME_EXPIRED = 1,
  // The session did not accept it, or a block that it depends on.
  SKYHAUL_OUTCOME_CANCELLED = 2,
} skyhaul_outcome;

// The state of a path.
typedef enum skyhaul_path_state {
  // It is being set up.
  SKYHAUL_PATH_STATE_PROBING = 0,
  // It carries data.
  SKYHAUL_PATH_STATE_ACTIVE = 1,
  // It is used when the others fail.
  SKYHAUL_PATH_STATE_STANDBY = 2,
  // It has not answered for longer than a round trip allows.
  SKYHAUL_PATH_STATE_STALLED = 3,
  // A hint announces an outage.
  SKYHAUL_PATH_STATE_ABSENT = 4,
  // It has not answered for long, and no other path can carry its data.
  SKYHAUL_PATH_STATE_SILENT = 5,
  // It drops large datagrams (black hole): short ones are answered, symbols do not arrive.
  SKYHAUL_PATH_STATE_BLACK_HOLE = 6,
} skyhaul_path_state;

// This host's node, by its block service.
typedef struct skyhaul_local skyhaul_local;

// A node with its sockets.
typedef struct skyhaul_node skyhaul_node;

// A received block. It counts against the receive window until it is freed.
typedef struct skyhaul_received skyhaul_received;

// A block that was handed over.
typedef struct skyhaul_sent skyhaul_sent;

// A session with another node.
typedef struct skyhaul_session skyhaul_session;

// A block's name within its session.
typedef struct skyhaul_block_name {
  // Its flow.
  uint32_t flow;
  // Its number within the flow.
  uint64_t seq;
} skyhaul_block_name;

// A block to send. skyhaul_block_reliable and skyhaul_block_expendable fill it in; then change
// single fields.
typedef struct skyhaul_block {
  // The flow that it belongs to. It gets the next number there.
  uint32_t flow;
  // Its bytes: 1 to 16777215.
  const uint8_t *data;
  // Their number.
  size_t len;
  // Its deadline in milliseconds from now; 0: none. An expendable block needs one.
  uint64_t deadline_ms;
  // It is given up at its deadline, and delivered as soon as it is complete, in any order.
  // Otherwise it is delivered in the order of its flow, however long that takes.
  bool expendable;
  // 0 is the most important; 1 is the default.
  uint8_t priority;
  // It is sent on every path (duplicates).
  bool redundant;
  // It is useless without the block `depends_on`: if that is given up, so is this one.
  bool depends;
  // It is useful even if that block is given up.
  bool useful_alone;
  // A block handed over before it, if `depends` requires one. skyhaul_sent_name gives its name.
  struct skyhaul_block_name depends_on;
  // Its class; NULL: the first.
  const char *class_name;
} skyhaul_block;

// A session to open through the block service of this host's node.
typedef struct skyhaul_local_call {
  // The socket file of the block service.
  const char *socket;
  // What this program calls itself.
  const char *name;
  // The name of the node's peer.
  const char *peer;
  // The name under which the program there listens.
  const char *program;
} skyhaul_local_call;

// A class that shares the line with others.
typedef struct skyhaul_class {
  // Its name, for blocks and other classes.
  const char *name;
  // Its parent class; NULL: none.
  const char *parent;
  // Its guaranteed rate, such as "2 Mbit/s"; NULL: none.
  const char *guarantee;
  // Its highest rate; NULL: its parent's.
  const char *ceiling;
  // Its priority: 0 (most important) to 7; negative: its parent's.
  int8_t priority;
} skyhaul_class;

// The options of a node. 0 or NULL means the default.
typedef struct skyhaul_options {
  // Its name, for the far ends' logs.
  const char *name;
  // Its private key, as text.
  const char *key;
  // The addresses of its sockets, such as "127.0.0.1:0"; each path uses one. None: any address
  // and port of IPv4.
  const char *const *bind;
  // Their number.
  size_t bind_count;
  // Fingerprints of the nodes that may connect; none: it accepts no connections.
  const char *const *trusted;
  // Their number.
  size_t trusted_count;
  // The rate of the line, such as "93 Mbit/s"; NULL: it is measured.
  const char *line;
  // The largest IP packet of the line in bytes, the same at both ends; 0: 1500.
  uint16_t packet;
  // The most bytes of blocks in flight, and the most received and not yet freed; 0: 64 MiB.
  uint64_t window;
  // How sessions share the line, parents first; none: one class without limits.
  const struct skyhaul_class *classes;
  // Their number.
  size_t class_count;
} skyhaul_options;

// A path to another node.
typedef struct skyhaul_path {
  // The far end's address, such as "192.0.2.1:4710".
  const char *remote;
  // The index of its socket, in the order of `bind`.
  size_t socket;
  // It carries only data that would be late on the free paths.
  bool metered;
  // It is used only while no other path works.
  bool standby;
} skyhaul_path;

// Another node to connect to.
typedef struct skyhaul_call {
  // The fingerprint of its key.
  const char *peer;
  // The paths to it, at least one.
  const struct skyhaul_path *paths;
  // Their number.
  size_t path_count;
} skyhaul_call;

// The content of a received block.
typedef struct skyhaul_arrival {
  // Its name.
  struct skyhaul_block_name name;
  // Its bytes; valid until it is freed.
  const uint8_t *data;
  // Their number.
  size_t len;
  // When it left, in nanoseconds since 1970 by the far end's clock.
  int64_t sent_ns;
  // The delay that losses caused, in nanoseconds: from its last symbol that was not
  // retransmitted to its delivery.
  uint64_t held_ns;
  // Whether a retransmission or FEC repair was needed.
  bool repaired;
} skyhaul_arrival;

// The figures of a path.
typedef struct skyhaul_path_report {
  // Its number within the session.
  uint8_t id;
  // Its state.
  enum skyhaul_path_state state;
  // Smoothed round-trip time in nanoseconds.
  uint64_t rtt_ns;
  // The rate that the congestion controller allows now, in bits per second.
  uint64_t rate_bps;
  // The share of datagrams lost, in parts per billion.
  uint32_t loss_ppb;
  // Symbols sent, including retransmissions.
  uint64_t symbols_sent;
  // Symbols that count as lost.
  uint64_t symbols_lost;
  // Repair symbols sent.
  uint64_t repair_sent;
} skyhaul_path_report;

// Counts of a session since it began.
typedef struct skyhaul_counters {
  // Blocks taken from the program.
  uint64_t blocks_taken;
  // Blocks that the far end reported complete.
  uint64_t blocks_reported;
  // Bytes of those.
  uint64_t bytes_reported;
  // Blocks given up here because their deadline passed.
  uint64_t blocks_given_up;
  // Blocks given to the program without retransmission or repair.
  uint64_t blocks_delivered;
  // Blocks given to the program after retransmission or FEC repair.
  uint64_t blocks_repaired;
  // Blocks begun here that expired, or that the far end gave up.
  uint64_t blocks_expired;
  // Bytes of blocks given to the program.
  uint64_t bytes_delivered;
  // Symbols sent for the first time.
  uint64_t symbols_sent;
  // Symbols retransmitted.
  uint64_t symbols_repeated;
  // Symbols recovered by FEC repair.
  uint64_t symbols_recovered;
} skyhaul_counters;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// A block that must arrive, in the order of its flow, however long that takes.
struct skyhaul_block skyhaul_block_reliable(uint32_t flow, const uint8_t *data, size_t len);

// A block that is given up after `deadline_ms`.
struct skyhaul_block skyhaul_block_expendable(uint32_t flow,
                                              uint64_t deadline_ms,
                                              const uint8_t *data,
                                              size_t len);

// The last error on this thread, in a sentence; empty if there was none. Valid until the next call
// on this thread.
const char *skyhaul_error(void);

// The version of the library, such as "0.1.0".
const char *skyhaul_version(void);

// Makes a private key and writes it to `pem` as text, as `skyhaul keygen` does to a file. Keep it
// secret.
//
// # Safety
// `size` bytes may be written at `pem`; SKYHAUL_KEY_SIZE is enough.
enum skyhaul_code skyhaul_key_generate(char *pem, size_t size);

// Writes the fingerprint of the private key `pem`, which the other end trusts and calls.
//
// # Safety
// `pem` is a text, and `size` bytes may be written at `fingerprint`; SKYHAUL_FINGERPRINT_SIZE is
// enough.
enum skyhaul_code skyhaul_key_fingerprint(const char *pem, char *fingerprint, size_t size);

// Opens the block service at a socket file, for a program of this name.
//
// # Safety
// `socket` and `name` are texts; `out` points to a place for a pointer.
enum skyhaul_code skyhaul_local_open(const char *socket, const char *name, struct skyhaul_local **out);

// Gives out a session with the program that listens as `program` at the node's peer of this name,
// once it is open. While the line to the peer is down, it waits.
//
// # Safety
// `node` is a local node; `peer` and `program` are texts; `out` points to a place for a pointer.
enum skyhaul_code skyhaul_local_connect(const struct skyhaul_local *node,
                                        const char *peer,
                                        const char *program,
                                        int64_t wait_ms,
                                        struct skyhaul_session **out);

// The same in one call, for a program that has one session: the session holds the local node.
//
// # Safety
// `call` points to a call whose texts are what they say; `out` to a place for a pointer.
enum skyhaul_code skyhaul_connect_local(const struct skyhaul_local_call *call,
                                        int64_t wait_ms,
                                        struct skyhaul_session **out);

// Takes sessions of far programs under this program's name from now on.
//
// # Safety
// `node` is a local node.
enum skyhaul_code skyhaul_local_listen(const struct skyhaul_local *node);

// Gives out the next session of a far program that called.
//
// # Safety
// `node` is a local node; `out` points to a place for a pointer.
enum skyhaul_code skyhaul_local_accept(const struct skyhaul_local *node,
                                       int64_t wait_ms,
                                       struct skyhaul_session **out);

// Ends a local node at once, and its sessions with it.
//
// # Safety
// `node` is NULL, or a local node that nobody else is using.
void skyhaul_local_close(struct skyhaul_local *node);

// Starts a node.
//
// # Safety
// `options` points to options whose texts and arrays are what they say; `out` to a place for a
// pointer.
enum skyhaul_code skyhaul_node_start(const struct skyhaul_options *options, struct skyhaul_node **out);

// Writes the address of a socket, with the port that it has: `place` counts from 0, in the order
// of `bind`.
//
// # Safety
// `node` is a node; `size` bytes may be written at `out`. 64 are enough.
enum skyhaul_code skyhaul_node_address(const struct skyhaul_node *node, size_t place, char *out, size_t size);

// Calls another node, and gives out the session with it once that stands.
//
// # Safety
// `node` is a node; `call` points to a call whose texts and arrays are what they say; `out` to a
// place for a pointer.
enum skyhaul_code skyhaul_node_connect(const struct skyhaul_node *node,
                                       const struct skyhaul_call *call,
                                       int64_t wait_ms,
                                       struct skyhaul_session **out);

// Gives out the next session of a node that called.
//
// # Safety
// `node` is a node; `out` points to a place for a pointer.
enum skyhaul_code skyhaul_node_accept(const struct skyhaul_node *node,
                                      int64_t wait_ms,
                                      struct skyhaul_session **out);

// Ends a node at once, and its sessions with it: blocks of which no outcome is known may not have
// arrived.
//
// # Safety
// `node` is NULL, or a node that nobody else is using.
void skyhaul_node_stop(struct skyhaul_node *node);

// Hands a block over, once there is room for it. `out` may be NULL where its fate does not matter.
//
// # Safety
// `session` is a session; `block` points to a block whose bytes and text are what they say; `out`
// is NULL, or points to a place for a pointer.
enum skyhaul_code skyhaul_session_send(const struct skyhaul_session *session,
                                       const struct skyhaul_block *block,
                                       int64_t wait_ms,
                                       struct skyhaul_sent **out);

// Gives out the next block that arrives.
//
// # Safety
// `session` is a session; `out` points to a place for a pointer.
enum skyhaul_code skyhaul_session_recv(const struct skyhaul_session *session,
                                       int64_t wait_ms,
                                       struct skyhaul_received **out);

// Writes a descriptor for poll(2) to `out`: it is readable when a block has arrived, the outcome
// of a block is known, or the session has ended. skyhaul_session_recv makes it unreadable; where
// there are more blocks it is readable again at once. It belongs to the session.
//
// # Safety
// `session` is a session; `out` points to a place for a number.
enum skyhaul_code skyhaul_session_descriptor(const struct skyhaul_session *session, int32_t *out);

// Closes a session once the blocks that were handed over have met their fate. To know of it, wait
// for their outcomes.
//
// # Safety
// `session` is NULL, or a session that nobody else is using.
void skyhaul_session_close(struct skyhaul_session *session);

// Tells a block's name, which others can depend on: it is known once the session has taken the
// block.
//
// # Safety
// `sent` is a block that was handed over; `out` points to a place for a name.
enum skyhaul_code skyhaul_sent_name(const struct skyhaul_sent *sent,
                                    int64_t wait_ms,
                                    struct skyhaul_block_name *out);

// Tells what became of a block. SKYHAUL_CODE_CLOSED: the session ended before that was known.
//
// # Safety
// `sent` is a block that was handed over; `out` points to a place for an outcome.
enum skyhaul_code skyhaul_sent_outcome(const struct skyhaul_sent *sent,
                                       int64_t wait_ms,
                                       enum skyhaul_outcome *out);

// Lets go of a block that was handed over: it is sent nevertheless.
//
// # Safety
// `sent` is NULL, or a block that was handed over and that nobody else is using.
void skyhaul_sent_free(struct skyhaul_sent *sent);

// Tells what a block that arrived holds.
//
// # Safety
// `received` is a block that arrived; `out` points to a place for what is known of it.
enum skyhaul_code skyhaul_received_view(const struct skyhaul_received *received, struct skyhaul_arrival *out);

// Frees a block that arrived, and the room that it took of the receive window.
//
// # Safety
// `received` is NULL, or a block that arrived and that nobody else is using.
void skyhaul_received_free(struct skyhaul_received *received);

// Writes the figures of a session's paths, as many as there is room for, and the number of paths
// to `count`.
//
// # Safety
// `session` is a session; `room` reports may be written at `out`; `count` points to a place for a
// number.
enum skyhaul_code skyhaul_session_paths(const struct skyhaul_session *session,
                                        struct skyhaul_path_report *out,
                                        size_t room,
                                        size_t *count);

// Says which rate a path of the session has from now on, counted in IP packets. With a time of
// zero or more in `lasts_ms` the path gets no more until then; a negative one sets no such limit.
//
// The paths of a session of this process have the numbers of `skyhaul_session_paths`. Those of one
// through the block service are numbered as the status of the node shows them, from 0; the hint is
// for all that the node sends there, and `hints` of `[[blocks.allow]]` says who may give it.
//
// # Safety
// `session` is a session.
enum skyhaul_code skyhaul_session_hint_rate(const struct skyhaul_session *session,
                                            uint8_t path,
                                            uint64_t rate_bps,
                                            int64_t lasts_ms);

// Says which share of its datagrams a path of the session loses at least, in parts of a billion,
// for so long: FEC repair is sized for it.
//
// # Safety
// `session` is a session.
enum skyhaul_code skyhaul_session_hint_loss(const struct skyhaul_session *session,
                                            uint8_t path,
                                            uint32_t loss_ppb,
                                            uint64_t lasts_ms);

// Withdraws what this program said of a path of the session.
//
// # Safety
// `session` is a session.
enum skyhaul_code skyhaul_session_withdraw_hints(const struct skyhaul_session *session, uint8_t path);

// Writes the counts of a session since it began.
//
// # Safety
// `session` is a session; `out` points to a place for counters.
enum skyhaul_code skyhaul_session_counters(const struct skyhaul_session *session,
                                           struct skyhaul_counters *out);

// Writes the name of the far end, as it says.
//
// # Safety
// `session` is a session; `size` bytes may be written at `out`.
enum skyhaul_code skyhaul_session_peer_name(const struct skyhaul_session *session, char *out, size_t size);

// Writes the fingerprint of the far end's key, as it proved; 72 bytes are enough.
//
// # Safety
// `session` is a session; `size` bytes may be written at `out`.
enum skyhaul_code skyhaul_session_peer(const struct skyhaul_session *session, char *out, size_t size);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* SKYHAUL_H */
