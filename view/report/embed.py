#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the style sheet and the script of a page as C (embedded.h).

usage: embed.py NAME CSS... JS OUT.c

The style sheets become one, gpv_NAME_style; the script becomes gpv_NAME_script.
"""
import base64
import hashlib
import pathlib
import sys


def embedded(page, name, text):
    digest = base64.b64encode(hashlib.sha256(text).digest()).decode()
    rows = [", ".join(map(str, text[at:at + 20])) for at in range(0, len(text), 20)]
    return (f"static const unsigned char {name}[] = {{\n    " + ",\n    ".join(rows) + "\n};\n"
            f"const struct gpv_embedded gpv_{page}_{name} = {{ {name}, sizeof({name}), "
            f"\"sha256-{digest}\" }};\n")


page, *css, js, out = sys.argv[1:]
css, js = [b"".join(pathlib.Path(p).read_bytes() for p in paths) for paths in (css, [js])]
pathlib.Path(out).write_text('#include "view/report/embedded.h"\n' + embedded(page, "style", css) +
                             embedded(page, "script", js))
