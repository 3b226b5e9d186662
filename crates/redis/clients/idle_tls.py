"""What an idle TLS connection takes of a server's memory: python3 idle_tls.py PORT PROCESS MOST_KIB."""

import re
import socket
import ssl
import sys

PORT, PROCESS, MOST = int(sys.argv[1]), sys.argv[2], float(sys.argv[3])
COUNT = 500


def private_kib():
    with open(f"/proc/{PROCESS}/status") as status:
        return int(re.search(r"RssAnon:\s+(\d+)", status.read()).group(1))


def connect():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    connection = context.wrap_socket(socket.create_connection(("127.0.0.1", PORT)))
    connection.sendall(b"PING\r\n")
    assert connection.recv(100) == b"+PONG\r\n"
    return connection


first = [connect() for _ in range(50)]
before = private_kib()
idle = [connect() for _ in range(COUNT)]
each = (private_kib() - before) / COUNT
print(f"an idle TLS connection takes {each:.1f} KiB")
assert 0 < each <= MOST, f"more than {MOST} KiB"
