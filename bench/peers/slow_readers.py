"""Clients of a server of products that ask for a file and read 1 kB of it a second."""

import resource
import socket
import threading
import urllib.parse


def raise_limit():
    """As many open sockets as this user may have."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class SlowReaders:
    """So many, from now on until they are stopped."""

    def __init__(self, url, count):
        to = urllib.parse.urlsplit(url)
        self.over = threading.Event()
        self.sockets = []
        for _ in range(count):
            # Little fits into the socket, so that the server has the rest.
            one = socket.socket()
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            one.connect((to.hostname, to.port))
            one.sendall(f"GET {to.path} HTTP/1.1\r\nHost: {to.netloc}\r\n\r\n".encode())
            self.sockets.append(one)
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    def read(self):
        while not self.over.is_set():
            for one in self.sockets:
                one.recv(1000)
            self.over.wait(1)

    def stop(self):
        self.over.set()
        self.thread.join()
        for one in self.sockets:
            one.close()
