#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the style sheet and the script of the report as C (embedded.h).

usage: embed.py CSS JS OUT.c
"""
import base64
import hashlib
import pathlib
import sys


def embedded(name, text):
    digest = base64.b64encode(hashlib.sha256(text).digest()).decode()
    rows = [", ".join(map(str, text[at:at + 20])) for at in range(0, len(text), 20)]
    return (f"static const unsigned char {name}[] = {{\n    " + ",\n    ".join(rows) + "\n};\n"
            f"const struct gpv_embedded gpv_page_{name} = {{ {name}, sizeof({name}), "
            f"\"sha256-{digest}\" }};\n")


css, js, out = map(pathlib.Path, sys.argv[1:])
out.write_text('#include "view/report/embedded.h"\n' + embedded("style", css.read_bytes()) +
               embedded("script", js.read_bytes()))
