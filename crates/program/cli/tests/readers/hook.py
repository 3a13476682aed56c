"""A server over TLS that notes what it is told by POST: CERTIFICATE KEY FILE. Prints its port."""

import http.server
import json
import ssl
import sys

certificate, key, told = sys.argv[1:]


class Hook(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        event = json.loads(self.rfile.read(int(self.headers["content-length"])))
        tls = self.connection.version()
        with open(told, "a", encoding="utf-8") as file:
            file.write(json.dumps({"path": self.path, "tls": tls, "event": event}) + "\n")
        self.send_response(204)
        self.end_headers()


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        """A client that does not trust the certificate leaves."""


context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)
server = Server(("127.0.0.1", 0), Hook)
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
server.serve_forever()
