# SPDX-License-Identifier: Apache-2.0
#
# Sends an order's events with fluent-logger.
import json
import sys

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
    kind = asyncsender.FluentSender if order["async"] else sender.FluentSender
    s = kind(
        order["tag"],
        host="unix://" + order["path"] if "path" in order else order["host"],
        port=order["port"],
        timeout=60.0,
        nanosecond_precision=order["times"] != "seconds",
        msgpack_kwargs={"use_bin_type": True},
        forward_packet_error=False,
    )
    for n in range(order["count"]):
        if not s.emit_with_time("t%d" % (n % 3), when(n, order["times"]), record(n, order["huge"])):
            sys.exit("event %d: %s" % (n, s.last_error))
    s.close()


main()
