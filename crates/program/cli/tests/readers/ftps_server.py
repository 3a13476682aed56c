"""A server of FTP over TLS (pyftpdlib), for one user:
ftps_server.py FOLDER PORT CERTIFICATE KEY PASSWORD

It takes logins, commands and data over TLS alone, and ends when its standard input is closed.
"""

import sys
import threading

from pyftpdlib.authorizers import DummyAuthorizer
from pyftpdlib.handlers import TLS_FTPHandler
from pyftpdlib.servers import FTPServer

folder, port, certificate, key, password = sys.argv[1:]
accounts = DummyAuthorizer()
accounts.add_user("sky", password, folder, perm="elradfmwMT")


class Handler(TLS_FTPHandler):
    certfile = certificate
    keyfile = key
    tls_control_required = True
    tls_data_required = True
    authorizer = accounts


server = FTPServer(("127.0.0.1", int(port)), Handler)
server.max_cons = server.max_cons_per_ip = 64
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
