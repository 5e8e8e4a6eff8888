"""Another user of this machine, as a process: becomes that uid, connects, does as it is told.

Words of the command line: port, uid, own port (0: any). A line on stdin is an order: `say` and a
request as JSON text, answered by a line with the response; `close`; `end`. Run by its path, so that
nothing has to be imported after the rights are gone.
"""

import encodings.idna
import json
import os
import socket
import sys

assert encodings.idna  # connecting looks it up, and the new user may not be able to read it


def main() -> None:
    port, uid, own_port = map(int, sys.argv[1:])
    if uid != os.getuid():
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    client.bind(("127.0.0.1", own_port))
    client.connect(("127.0.0.1", port))
    print(json.dumps(client.getsockname()), flush=True)
    for line in sys.stdin:
        verb, _, words = line.rstrip("\n").partition(" ")
        if verb == "say":
            client.sendall(json.loads(words).encode())
            answer = b""
            while part := client.recv(65_536):
                answer += part
            print(json.dumps(answer.decode("latin-1")), flush=True)
        elif verb == "close":
            client.close()
            print("null", flush=True)
        else:
            return


main()
