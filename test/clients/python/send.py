# SPDX-License-Identifier: Apache-2.0
#
# Sends an order's events with fluent-logger.
import json
import os
import socket
import sys
import time

from fluent import asyncsender, sender


def record(n, huge):
    r = {
        "n": n,
        "text": 'zwölf "%d"\n\t€ 日本語 🚀' % n,
        "half": n + 0.5,
        "list": [None, True, False, {"deep": -n}, []],
        "map": {"": {}, "é": {"inner": "x"}},
        "none": None,
        "long": "x" * (n % 300),
        "big": 2**53 - 1 - n,
        "low": n - (2**53 - 1),
    }
    if huge:
        r["huge"] = 2**63 - 1 - n
        r["least"] = n - 2**63
    return r


def when(n, times):
    seconds = 1700000000 + n // 8
    if times == "seconds":
        return seconds
    if times == "milliseconds":
        return sender.EventTime(seconds, n % 1000 * 1000000)
    if times == "eighths":
        return 1700000000 + n / 8  # the client makes an EventTime of it
    return sender.EventTime.from_unix_nano(seconds * 10**9 + (n * 7919 + 1) % 10**9)


def main():
    order = json.loads(sys.stdin.readline())
    if order["ack"] or order["mode"] != "message" or "ca" in order or "shared_key" in order:
        sys.exit("the client has no acks, no modes, no TLS and no handshake")
    # One way of packing for each way of telling the time: of before str8 and bin, with short floats, and the usual one.
    packing = {"seconds": {"use_bin_type": False}, "eighths": {"use_single_float": True}}
    kind = asyncsender.FluentSender if order["async"] else sender.FluentSender
    s = kind(
        order["tag"],
        host="unix://" + order["path"] if "path" in order else order["host"],
        port=order["port"],
        timeout=60.0,
        nanosecond_precision=order["times"] != "seconds",
        msgpack_kwargs=packing.get(order["times"], {}),
        forward_packet_error=False,
    )
    for n in range(order["count"]):
        if order["phase"] == "buffer" and n == order["count"] - 1:
            told(order)
        sent = s.emit_with_time("t%d" % (n % 3), when(n, order["times"]), record(n, order["huge"]))
        if not sent and order["phase"] != "buffer":
            sys.exit("event %d: %s" % (n, s.last_error))
    s.close()


def told(order):
    """Tells that all events but the last are handed over to nobody, and waits for somebody."""
    open(os.path.join(order["dir"], "buffered"), "w").close()
    while True:
        try:
            socket.create_connection((order["host"], order["port"])).close()
            return
        except OSError:
            time.sleep(0.02)


main()
