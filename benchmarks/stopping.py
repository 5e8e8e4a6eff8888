"""How long people wait for the end of a service that is looked at.

    python -m benchmarks.stopping [--rounds 5]

The demo (service, eight workers with 96 in flight, simulator), three open streams of its page, then
SIGTERM. Measured: from the signal to the end of the process, everything saved. Bar: the median is
at most 2 s. A minute and a half.
"""

import argparse
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

BAR_S = 2.0
N_STREAMS = 3
_SERVES = re.compile(r"Longwatch serves .* at http://([\d.]+):(\d+)")
_IN_FLIGHT = re.compile(r"in flight")


def one_round() -> float:
    """Return the seconds from SIGTERM to the end."""
    with tempfile.TemporaryDirectory() as home:
        command = [sys.executable, "-m", "app", "demo", "--home", home, "--port", "0"]
        demo = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            host, port = _started(demo)
            streams = [_stream(host, port, n) for n in range(N_STREAMS)]
            for stream in streams:
                assert stream.recv(64).startswith(b"HTTP/1.1 200")
            begin = time.monotonic()
            demo.send_signal(signal.SIGTERM)
            demo.wait(30)
            return time.monotonic() - begin
        finally:
            demo.kill()
            demo.wait()


def _started(demo: "subprocess.Popen[str]") -> tuple[str, int]:
    """Wait until every line of the progress has something in flight."""
    address = None
    assert demo.stdout
    for line in demo.stdout:
        found = _SERVES.search(line)
        address = (found[1], int(found[2])) if found else address
        if address and "B8_plans" in line and _IN_FLIGHT.search(line):
            return address
    raise AssertionError("the demo has ended before it was at work")


def _stream(host: str, port: int, n: int) -> socket.socket:
    stream = socket.create_connection((host, port), timeout=10)
    head = f"GET /runs/1/live HTTP/1.1\r\nHost: {host}:{port}\r\nUser-Agent: viewer-{n}\r\n\r\n"
    stream.sendall(head.encode())
    return stream


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    took_s = [one_round() for _ in range(parser.parse_args().rounds)]
    median_s = statistics.median(took_s)
    print(f"SIGTERM to the end: {median_s:.2f} s ({', '.join(f'{each:.2f}' for each in took_s)})")
    return int(median_s > BAR_S)


if __name__ == "__main__":
    sys.exit(main())
