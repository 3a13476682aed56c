// Sends or receives as fast as a library can, from memory to memory, and says how much processor time it took.
//
//   library receive PORT [ADDRESS [SECONDS]]   one line at the end: bytes, seconds, processor seconds
//   library send PORT SECONDS MSS [ADDRESS]    the same, from the sending side
//   library version                            which library it is
//
// Built once with -DWITH_UDT and once with -DWITH_SRT. MSS is the IP packet's size, as both libraries count it. A pass
// phrase in the environment (PEER_PHRASE) switches SRT's AES-128 on. The address is 127.0.0.1 unless one is given. With
// SECONDS a receiver ends that long after the sender has come, whatever is under way, and counts what it got by then.

#include <arpa/inet.h>
#include <sys/resource.h>
#include <sys/time.h>

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#ifndef PEER_VERSION
#define PEER_VERSION "of an unknown version"
#endif

#ifdef WITH_UDT
#include <udt/udt.h>
namespace peer {
using Socket = UDTSOCKET;
void start() { UDT::startup(); }
void stop() { UDT::cleanup(); }
Socket make(int mss) {
    Socket socket = UDT::socket(AF_INET, SOCK_STREAM, 0);
    int buffer = 64 << 20, window = 65536;
    UDT::setsockopt(socket, 0, UDT_MSS, &mss, sizeof mss);
    UDT::setsockopt(socket, 0, UDT_FC, &window, sizeof window);
    UDT::setsockopt(socket, 0, UDT_SNDBUF, &buffer, sizeof buffer);
    UDT::setsockopt(socket, 0, UDT_RCVBUF, &buffer, sizeof buffer);
    UDT::setsockopt(socket, 0, UDP_SNDBUF, &buffer, sizeof buffer);
    UDT::setsockopt(socket, 0, UDP_RCVBUF, &buffer, sizeof buffer);
    return socket;
}
bool listen(Socket socket, const sockaddr_in& at) {
    return UDT::bind(socket, (const sockaddr*)&at, sizeof at) != UDT::ERROR && UDT::listen(socket, 1) != UDT::ERROR;
}
Socket accept(Socket socket) {
    sockaddr_in from;
    int length = sizeof from;
    return UDT::accept(socket, (sockaddr*)&from, &length);
}
bool connect(Socket socket, const sockaddr_in& to) {
    return UDT::connect(socket, (const sockaddr*)&to, sizeof to) != UDT::ERROR;
}
int send(Socket socket, const char* bytes, int length) { return UDT::send(socket, bytes, length, 0); }
int receive(Socket socket, char* bytes, int length) { return UDT::recv(socket, bytes, length, 0); }
void close(Socket socket) { UDT::close(socket); }
}  // namespace peer
#else
#include <srt/srt.h>
namespace peer {
using Socket = SRTSOCKET;
void start() { srt_startup(); }
void stop() { srt_cleanup(); }
Socket make(int mss) {
    Socket socket = srt_create_socket();
    int file = SRTT_FILE, buffer = 64 << 20, window = 65536;
    srt_setsockopt(socket, 0, SRTO_TRANSTYPE, &file, sizeof file);
    srt_setsockopt(socket, 0, SRTO_MSS, &mss, sizeof mss);
    srt_setsockopt(socket, 0, SRTO_FC, &window, sizeof window);
    srt_setsockopt(socket, 0, SRTO_SNDBUF, &buffer, sizeof buffer);
    srt_setsockopt(socket, 0, SRTO_RCVBUF, &buffer, sizeof buffer);
    srt_setsockopt(socket, 0, SRTO_UDP_SNDBUF, &buffer, sizeof buffer);
    srt_setsockopt(socket, 0, SRTO_UDP_RCVBUF, &buffer, sizeof buffer);
    if (const char* phrase = getenv("PEER_PHRASE")) {
        int bytes = 16;
        srt_setsockopt(socket, 0, SRTO_PBKEYLEN, &bytes, sizeof bytes);
        srt_setsockopt(socket, 0, SRTO_PASSPHRASE, phrase, (int)strlen(phrase));
    }
    return socket;
}
bool listen(Socket socket, const sockaddr_in& at) {
    return srt_bind(socket, (const sockaddr*)&at, sizeof at) != SRT_ERROR && srt_listen(socket, 1) != SRT_ERROR;
}
Socket accept(Socket socket) { return srt_accept(socket, nullptr, nullptr); }
bool connect(Socket socket, const sockaddr_in& to) {
    return srt_connect(socket, (const sockaddr*)&to, sizeof to) != SRT_ERROR;
}
int send(Socket socket, const char* bytes, int length) { return srt_send(socket, bytes, length); }
int receive(Socket socket, char* bytes, int length) { return srt_recv(socket, bytes, length); }
void close(Socket socket) { srt_close(socket); }
}  // namespace peer
#endif

static double wall() {
    timeval now;
    gettimeofday(&now, nullptr);
    return now.tv_sec + now.tv_usec / 1e6;
}

static double processor() {
    rusage used;
    getrusage(RUSAGE_SELF, &used);
    return used.ru_utime.tv_sec + used.ru_stime.tv_sec + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

static int fail(const char* what) {
    fprintf(stderr, "%s\n", what);
    return 1;
}

static int receive(const sockaddr_in& at, double limit) {
    peer::Socket listener = peer::make(1500);
    if (!peer::listen(listener, at)) return fail("the port cannot be used");
    peer::Socket from = peer::accept(listener);
    std::vector<char> bytes(1 << 20);
    std::atomic<long long> total{0};
    double began = wall(), last = began, spent = processor(), spent_last = spent;
    if (limit > 0) {
        std::thread([&total, began, spent, limit] {
            usleep((useconds_t)(limit * 1e6));
            printf("%lld %.6f %.6f\n", total.load(), wall() - began, processor() - spent);
            fflush(stdout);
            _exit(0);
        }).detach();
    }
    int got;
    while ((got = peer::receive(from, bytes.data(), (int)bytes.size())) > 0) {
        total += got;
        last = wall();
        spent_last = processor();
    }
    printf("%lld %.6f %.6f\n", total.load(), last - began, spent_last - spent);
    peer::close(from);
    peer::close(listener);
    return 0;
}

static int send(const sockaddr_in& to, double seconds, int mss) {
    peer::Socket socket = peer::make(mss);
    if (!peer::connect(socket, to)) return fail("nobody answers");
    std::vector<char> bytes(1 << 20, 0x5a);
    long long total = 0;
    double began = wall(), spent = processor();
    while (wall() - began < seconds) {
        for (size_t at = 0; at < bytes.size();) {
            int sent = peer::send(socket, bytes.data() + at, (int)(bytes.size() - at));
            if (sent <= 0) return fail("the connection broke");
            at += sent;
            total += sent;
        }
    }
    double span = wall() - began, used = processor() - spent;
    peer::close(socket);
    printf("%lld %.6f %.6f\n", total, span, used);
    return 0;
}

#ifdef WITH_UDT
static const char* const name = "UDT ";
#else
static const char* const name = "SRT ";
#endif

int main(int count, char** arguments) {
    if (count == 2 && strcmp(arguments[1], "version") == 0) return printf("%s%s\n", name, PEER_VERSION) < 0;
    bool is_sender = count >= 5 && strcmp(arguments[1], "send") == 0;
    bool is_receiver = count >= 3 && strcmp(arguments[1], "receive") == 0;
    if (!is_sender && !is_receiver) {
        return fail("library receive PORT [ADDRESS [SECONDS]] | library send PORT SECONDS MSS [ADDRESS] | library version");
    }
    const char* where = is_sender ? (count > 5 ? arguments[5] : nullptr) : (count > 3 ? arguments[3] : nullptr);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons((unsigned short)atoi(arguments[2]));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (where && inet_pton(AF_INET, where, &address.sin_addr) != 1) return fail("that is no IPv4 address");
    peer::start();
    double limit = is_receiver && count > 4 ? atof(arguments[4]) : 0;
    int code = is_sender ? send(address, atof(arguments[3]), atoi(arguments[4])) : receive(address, limit);
    peer::stop();
    return code;
}
