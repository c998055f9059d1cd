#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests spectrogram on recordings with known pictures, which it makes, and on damaged files.

usage: spectrogram.py PROGRAM [DEVICES]
DEVICES is cpu:2 by default; with the name of a GPU the same tests run there.
"""
import array
import math
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

PROGRAM = sys.argv[1]
DEVICES = sys.argv[2] if len(sys.argv) > 2 else "cpu:2"
RATE = 16000


def wave(samples, rate=RATE, channels=1, bits=16, tag=1, cut=None):
    """A WAVE file as bytes; `cut`: the number of bytes to keep."""
    data = array.array("h", samples)
    if sys.byteorder == "big":
        data.byteswap()
    align = channels * bits // 8
    form = struct.pack("<HHIIHH", tag, channels, rate, rate * align, align, bits)
    chunks = b"fmt " + struct.pack("<I", len(form)) + form
    chunks += b"LIST" + struct.pack("<I", 3) + b"abc\0"
    chunks += b"data" + struct.pack("<I", 2 * len(data)) + data.tobytes()
    return (b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks)[:cut]


def tone(hertz, seconds, rate=RATE, level=16000):
    return [round(level * math.sin(2 * math.pi * hertz * i / rate))
            for i in range(int(seconds * rate))]


def run(*arguments, status=0):
    done = subprocess.run([PROGRAM, *map(str, arguments)],
                          capture_output=True, text=True, timeout=60)
    if done.returncode != status:
        sys.exit(f"{arguments}: exit status {done.returncode}, not {status}\n"
                 f"{done.stdout}{done.stderr}")
    return done


def picture(path):
    kind, size, most, pixels = path.read_bytes().split(b"\n", 3)
    width, height = map(int, size.split())
    assert (kind, most, len(pixels)) == (b"P5", b"255", width * height), path
    return width, height, pixels


def check(holds, what):
    if not holds:
        sys.exit(f"not so: {what}")


def brightest(path, column):
    """Which coefficient is the strongest in a column."""
    width, height, pixels = picture(path)
    rows = [pixels[row * width + column] for row in range(height)]
    return height - 1 - rows.index(max(rows))


def check_pictures(here, out):
    """Each tone is at its coefficient in any file format; all methods match the definition."""
    both = [v for sample in tone(3000, 0.5) for v in (sample, sample)]
    files = {"low": wave(tone(500, 1)), "high": wave(tone(6000, 1)),
             "stereo": wave(both, channels=2), "mono": wave(tone(3000, 0.5)),
             "short": wave(tone(1000, 0.01)), "slow": wave(tone(1000, 1, 8000), rate=8000),
             "silence": wave([0] * 8000), "long": wave(tone(2000, 12))}
    for name, data in files.items():
        (here / f"{name}.wav").write_bytes(data)
    paths = [here / f"{name}.wav" for name in files]
    done = run("--devices", DEVICES, "--compare", "--out", out, *paths)
    lines = dict(line.split(": ", 1) for line in done.stdout.splitlines())
    check(set(lines) == set(files), f"one line for each file: {done.stdout}")
    check(all("relative error" in line for line in lines.values()), done.stdout)
    check("8 of 8 pictures" in done.stderr, done.stderr)
    widths = {"low": 122, "high": 122, "stereo": 59, "mono": 59, "short": 1, "slow": 59,
              "silence": 59, "long": 1497}
    for name, width in widths.items():
        check(picture(out / f"{name}.pgm")[:2] == (width, 257),
              f"{name} is {width} x 257: {lines[name]}")
    for name, coefficient in {"low": 16, "high": 192, "stereo": 96, "slow": 64, "long": 64}.items():
        for column in (0, widths[name] // 2, widths[name] - 1):
            got = brightest(out / f"{name}.pgm", column)
            check(got == coefficient,
                  f"{name}, column {column}: brightest is {got}, not {coefficient}")
    check(set(picture(out / "silence.pgm")[2]) == {0}, "silence is dark")
    check(picture(out / "stereo.pgm") == picture(out / "mono.pgm"), "two equal channels are as one")
    return paths


def check_sizes(here, out):
    run("--devices", DEVICES, "--compare", "--size", 64, "--hop", 64, "--out", out,
        here / "low.wav")
    check(picture(out / "low.pgm")[:2] == (250, 33), "--size and --hop give 250 x 33")
    check(brightest(out / "low.pgm", 100) == 2, "500 Hz is coefficient 2 of 64")
    run("--devices", DEVICES, "--compare", "--size", 8192, "--out", out, here / "low.wav")
    check(brightest(out / "low.pgm", 2) == 256, "500 Hz is coefficient 256 of 8192")


def check_bad_files(here, out, good):
    """Each bad file is named with its reason; the good ones are not held up; status 1."""
    bad = {"empty.wav": (b"", "empty"), "words.wav": (b"these are words", "neither WAVE"),
           "riff.wav": (b"RIFF\0\0\0\0WAVE", "without a format"),
           "eight.wav": (wave([0] * 99, bits=8), "16 bits"),
           "float.wav": (wave([0] * 99, tag=3), "16 bits"),
           "none.wav": (wave([]), "without samples"),
           "cut.wav": (wave([0] * 99, cut=40), "without"),
           "odd.wav": (wave([0] * 99, channels=0), "contradicts"),
           "huge.wav": (b"RIFF\xff\xff\xff\xffWAVEfmt \xff\xff\xff\xff", "without a format"),
           "far.wav": (b"RIFF\0\0\0\0WAVELIST\xff\xff\xff\xff" + bytes(20), "without a format"),
           "zero.wav": (wave([0] * 99, rate=0), "contradicts")}
    for name, (data, _) in bad.items():
        (here / name).write_bytes(data)
    (here / "folder.wav").mkdir()
    reasons = {name: why for name, (_, why) in bad.items()} | {"folder.wav": "not a regular file",
                                                              "missing.wav": "No such file"}
    paths = [here / name for name in reasons]
    done = run("--devices", DEVICES, "--out", out, *paths, good, status=1)
    for name, why in reasons.items():
        lines = [line for line in done.stderr.splitlines() if f"{here / name}: ERROR: " in line]
        check(len(lines) == 1 and why in lines[0], f"{name}: one line that says \"{why}\": {lines}")
        check(not (out / name.replace(".wav", ".pgm")).exists(), f"no picture of {name}")
    check("1 of 14 pictures" in done.stderr, done.stderr)
    check(picture(out / f"{good.stem}.pgm")[0] > 0, "the good file has its picture")


def check_damaged(here, out):
    """A file of any bytes makes a picture or an ERROR, never the death of a worker."""
    dice = random.Random(1)
    whole = wave(tone(1000, 0.1))
    paths = []
    for n in range(300):
        data = bytearray(whole[:dice.choice([len(whole), dice.randrange(1, 80)])])
        for _ in range(dice.randrange(1, 6)):
            value = dice.choice([0, 1, 0x7f, 0xff, dice.randrange(256)])
            data[dice.randrange(min(len(data), 70))] = value
        paths.append(here / f"damaged{n}.wav")
        paths[-1].write_bytes(data)
    done = run("--devices", DEVICES, "--out", out, *paths, status=1)
    errors = done.stderr.count(": ERROR: ")
    check(len(done.stdout.splitlines()) + errors == len(paths)
          and 0 < errors < len(paths) and "CRASHED" not in done.stderr,
          f"{len(paths)} files, {errors} errors, the rest pictures: {done.stderr[-2000:]}")


def check_usage(here, good):
    for arguments in (["--size", "100"], ["--size", "16"], ["--size", "1e3"], ["--hop", "0"],
                      ["--hop", "600"], ["--limit", "0"], ["--limit", "-1"], ["--unknown"],
                      ["--size"]):
        run(*arguments, good, status=2)
    check(run("--help").stdout.startswith("Usage: spectrogram"), "--help")
    (here / "twin").mkdir()
    (here / "twin" / good.name).write_bytes(good.read_bytes())
    check("would both become" in run(good, here / "twin" / good.name, status=1).stderr,
          "twins are refused")
    check("--sounds" in run("--sounds", here / "nowhere", status=1).stderr,
          "a missing folder is named")
    check("cpu:0" in run("--devices", "cpu:0", good, status=1).stderr, "a bad device is named")
    (here / "file").write_text("")
    done = run("--devices", "cpu:1", "--out", here / "file", good, status=1)
    check("cannot write" in done.stderr, "an --out that is no folder is named")
    check("cannot make" in run("--out", here / "no" / "folder", good, status=1).stderr,
          "nor can it be made")


def check_lost_device(here, good):
    """A device that falls off the bus costs no picture."""
    script = here / "lost.txt"
    script.write_text("at 2ms gpu 0 xid 79 lost\n")
    done = run("--devices", f"fake:2,script={script}", "--compare", "--out", here / "lost", *good)
    check(len(done.stdout.splitlines()) == len(good),
          f"{len(good)} pictures: {done.stdout}{done.stderr}")


def record(case):
    """For tools/test.sh, which counts."""
    if os.environ.get("GPUD_TEST_RESULTS"):
        with open(os.environ["GPUD_TEST_RESULTS"], "a") as out:
            out.write(f"pass examples/{case}\n")


def check_same(here, good):
    """A picture depends neither on the number of workers nor on the default device."""
    outs = [here / "one", here / "three", here / "default"]
    for out, devices in zip(outs, (["--devices", "cpu:1"], ["--devices", "cpu:3"], [])):
        run(*devices, "--out", out, *good)
    for name in (p.name for p in outs[0].iterdir()):
        width, height, pixels = picture(outs[0] / name)
        check((width, height, pixels) == picture(outs[1] / name),
              f"{name}: one worker and three agree")
        other = picture(outs[2] / name)
        alike = all(abs(a - b) <= 1 for a, b in zip(pixels, other[2]))
        check(other[:2] == (width, height) and alike,
              f"{name}: cpu and the default device agree")


def main():
    with tempfile.TemporaryDirectory() as folder:
        here = pathlib.Path(folder)
        good = check_pictures(here, here / "out")
        check_sizes(here, here / "sizes")
        check_bad_files(here, here / "bad", good[0])
        check_damaged(here, here / "damaged")
        check_usage(here, good[0])
        check_same(here, good[:3])
        check_lost_device(here, good)
    record("spectrogram")
    print("spectrogram: all is right on", DEVICES)


main()
