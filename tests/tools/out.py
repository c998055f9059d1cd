# SPDX-License-Identifier: MIT
"""Output of any bytes that a driver may return: JSON stays JSON, and no byte steers a terminal."""
import json
import sys

sys.dont_write_bytecode = True
from tool import equal, run

# The bytes, and the text that a reader of the document receives.  U+FFFD replaces each byte that is
# no part of a character.
TEXTS = (
    (b"plain", "plain"),
    (b'quote " backslash \\ slash /', 'quote " backslash \\ slash /'),
    (b"\x1b[31mred\x07\x7f\ttab", "\x1b[31mred\x07\x7f\ttab"),
    ("ä € 😀 \u0085".encode(), "ä € 😀 \u0085"),
    ("left \u202e right \u2066 line \u2028 mark \u200f".encode(),
     "left \u202e right \u2066 line \u2028 mark \u200f"),
    (b"\xe9", "\ufffd"),
    (b"\xc0\xaf", "\ufffd\ufffd"),  # longer than needed
    (b"\xe0\x80\xaf", "\ufffd\ufffd\ufffd"),
    (b"\xf0\x8f\xbf\xbf", "\ufffd\ufffd\ufffd\ufffd"),
    (b"\xed\xa0\x80", "\ufffd\ufffd\ufffd"),  # half of a pair
    (b"\xf4\x90\x80\x80", "\ufffd\ufffd\ufffd\ufffd"),  # beyond the last
    (b"\xf4\x8f\xbf\xbf", "\U0010ffff"),
    (b"cut \xe2\x82", "cut \ufffd\ufffd"),
    (b"\xc3(", "\ufffd("),
    (b"", ""),
)


def test_texts(tool):
    status, out, err = tool.run(*(given for given, _ in TEXTS))
    equal((status, err), (0, ""))
    *table, document = out[:-1].split("\n")
    equal(json.loads(document), [wanted for _, wanted in TEXTS])
    assert all(ord(c) >= 0x20 for c in document)
    assert all(c.isprintable() or c == "\U0010ffff" for line in table for c in line), table


def test_table(tool):
    status, out, _ = tool.run("a", "äöü".encode(), "\x1b[2J", "long " * 30)
    lines = out.splitlines()[1:-1]
    equal(lines[1::2], ["    " + text for text in ("a", "äöü", r"\x1b[2J", "long " * 30)])
    equal({len(line) for line in lines[0::2]}, {150 + 2 + 1})  # all are as wide
    equal([line[-1] for line in lines[0::2]], ["1", "2", "3", "4"])


run(globals())
