# SPDX-License-Identifier: Apache-2.0
#
# Sends events with the fluent-logger package: fluent_logger.py HOST PORT COUNT NANOSECONDS(0|1). HOST may be unix:///path.
# Event n has the time 1700000000 + n / 8 seconds, which floats hold exactly.
import sys

from fluent import sender


def main():
    host, port, count, nanoseconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "1"
    s = sender.FluentSender("python", host=host, port=port, nanosecond_precision=nanoseconds)
    for n in range(count):
        when = 1700000000 + n / 8
        when = sender.EventTime(when) if nanoseconds else int(when)
        record = {"n": n, "text": "zwölf \"%d\"\n" % n, "half": n + 0.5, "list": [None, True, {"deep": -n}]}
        if not s.emit_with_time("label", when, record):
            print(s.last_error, file=sys.stderr)
            sys.exit(1)
    s.close()


main()
