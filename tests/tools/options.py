# SPDX-License-Identifier: MIT
"""The table of verbs: parser, help, manual page, completion and document agree.  Also output that
fails."""
import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
from tool import Skip, contains, equal, run


def verbs(tool):
    status, out, _ = tool.run("help")
    equal(status, 0)
    return re.findall(r"^  (\w+) ", out.split("Verbs:")[1], flags=re.M)


def options(tool, verb):
    """Long name to (letter or None, whether it takes a value: "", "=" or "[=")."""
    status, out, _ = tool.run("help", verb)
    equal(status, 0)
    found = re.findall(r"^  (?:-(\w), |    )--([\w-]+)(\[?=?)", out, flags=re.M)
    assert found, out
    return {name: (letter or None, value) for letter, name, value in found}


def statuses(tool, verb):
    return re.findall(r"^  (\d)  ", tool.run("help", verb)[1].split("Exit status:")[1], flags=re.M)


def test_each_verb_helps(tool):
    assert {"doctor", "gpus", "help", "version"} <= set(verbs(tool))
    for verb in verbs(tool):
        by_verb = tool.run("help", verb)
        for word in ("--help", "-h"):
            equal(tool.run(verb, word), by_verb)
        assert max(map(len, by_verb[1].splitlines())) <= 80
    equal(tool.run("--help"), tool.run("help"))
    equal(tool.run("--version"), tool.run("version"))


def test_parser_takes_what_help_says(tool):
    for verb in verbs(tool):
        for name, (letter, value) in options(tool, verb).items():
            words = [f"--{name}" + ("=1" if value else "")]
            if letter:
                words.append(f"-{letter}" + ("1" if value else ""))
            for word in words:
                status, out, err = tool.run(verb, word, "--help")
                equal((word, status, err), (word, 0, ""))


def test_manual_agrees(tool):
    status, page, _ = tool.run("help", "--man")
    equal(status, 0)
    for verb in verbs(tool):
        section = re.search(rf"^\.SS gpudispatch {verb} .*?(?=^\.S|\Z)", page, flags=re.M | re.S)
        section = section.group()
        listed = re.findall(r"^(?:\\fB\\-\w\\fR, )?\\fB\\-\\-((?:\w|\\-)+)", section, flags=re.M)
        equal({name.replace("\\-", "-") for name in listed}, set(options(tool, verb)))
        equal(re.findall(r"^\.TP\n(\d)$", section, flags=re.M), statuses(tool, verb))


def test_manual_is_roff(tool):
    if not shutil.which("groff"):
        raise Skip("needs the package groff-base")
    page = tool.run("help", "--man")[1]
    shown = subprocess.run(["groff", "-ww", "-man", "-Tutf8"], input=page,
                           capture_output=True, text=True, timeout=60)
    equal((shown.returncode, shown.stderr), (0, ""))


def completed(tool, *words):
    if not shutil.which("bash"):
        raise Skip("needs the package bash")
    script = tool.run("help", "--completion")[1] + (
        '\ncompopt() { :; }; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _gpudispatch; '
        'printf "%s\\n" "${COMPREPLY[@]}"')
    shown = subprocess.run(["bash", "--norc", "-c", script, "bash", "gpudispatch", *words],
                           capture_output=True, text=True, timeout=60)
    equal((shown.returncode, shown.stderr), (0, ""))
    return set(shown.stdout.split())


def test_completion_agrees(tool):
    equal(completed(tool, ""), set(verbs(tool)))
    equal(completed(tool, "help", ""), set(verbs(tool)))
    equal(completed(tool, "ver"), {"version"})
    for verb in verbs(tool):
        equal({word.rstrip("=") for word in completed(tool, verb, "--")},
              {f"--{name}" for name in options(tool, verb)})
    equal(completed(tool, "nonsense", "--"), set())


def test_document_agrees(tool):
    """docs/reference/commands.md is printed by the program."""
    with open(os.path.join(tool.root, "docs/reference/commands.md")) as f:
        equal(f.read(), tool.run("help", "--markdown")[1])


def test_pages_agree(tool):
    """gpudispatch.1.md explains the verbs about the machine."""
    with open(os.path.join(tool.root, "docs/reference/gpudispatch.1.md")) as f:
        text = f.read()
    for verb in ("doctor", "gpus", "help", "version"):
        section = re.search(rf"^## `gpudispatch {verb}.*?(?=^## |\Z)", text, flags=re.M | re.S)
        assert section, f"docs/reference/gpudispatch.1.md has no section for {verb}"
        rows = set(re.findall(r"^\| `(?:-\w`, `)?--([\w-]+)", section.group(), flags=re.M))
        equal((verb, rows | {"help"}), (verb, set(options(tool, verb))))
        equal(re.findall(r"^\| (\d) \|", section.group(), flags=re.M), statuses(tool, verb))


def test_wrong_usage(tool):
    for args, part in (
        ((), "a verb is missing"),
        (("nonsense",), "unknown verb 'nonsense'"),
        (("--nonsense",), "unknown verb '--nonsense'"),
        (("help", "nonsense"), "unknown verb 'nonsense'"),
        (("help", "--man", "gpus"), "exclude"),
        (("gpus", "--nonsense"), "--nonsense"),
        (("gpus", "--nonsense=3"), "option --nonsense\n"),
        (("gpus", "--quick"), "--quick"),
        (("gpus", "-x"), "-x"),
        # Names are whole: a further option may begin with the same letters.
        (("gpus", "--wa"), "unknown option --wa: did you mean --wait or --watch?\n"),
        (("gpus", "--wai"), "unknown option --wai: did you mean --wait?\n"),
        (("gpus", "--wai=3"), "unknown option --wai: did you mean --wait?\n"),
        (("gpus", "--wiat"), "unknown option --wiat: did you mean --wait?\n"),
        (("gpus", "--dev"), "unknown option --dev: did you mean --devices?\n"),
        (("gpus", "--x=--json"), "unknown option --x\n"),
        (("verison",), "unknown verb 'verison': did you mean version?\n"),
        (("help", "gpu"), "help: unknown verb 'gpu': did you mean gpus?\n"),
        (("kill",), "unknown verb 'kill': did you mean cancel?\n"),
        (("gpus", "-d"), "needs a value, SPEC"),
        (("gpus", "--devices"), "needs a value, SPEC"),
        (("gpus", "--json=3"), "takes no value"),
        (("gpus", "extra"), "'extra'"),
        (("gpus", "--watch", "soon"), "'soon'"),
        (("gpus", "--watch=soon"), "'soon'"),
        (("gpus", "--watch=0"), "'0'"),
        (("gpus", "--watch", "1e9"), "'1e9'"),
        (("gpus", "--watch=nan"), "'nan'"),
        (("gpus", "--wait="), "--wait"),
        (("gpus", "--wait=-1"), "'-1'"),
        (("gpus", "--devices=cpu:2"), "cpu:2"),
        (("gpus", "--devices=fake:0"), "fake:0"),
        (("gpus", "--devices=fake:2,script=/nonexistent"), "/nonexistent"),
        (("doctor", "--watch"), "--watch"),
        (("doctor", "--devices=nonsense"), "nonsense"),
    ):
        status, out, err = tool.run(*args)
        equal((args, status, out), (args, 2, ""))
        contains(err, part)
        contains(err, "gpudispatch: ")


def test_output_that_fails(tool):
    for args in (("help",), ("version",), ("gpus",), ("gpus", "--json"), ("doctor", "--quick"),
                 ("gpus", "--watch", *tool.fake(1))):
        with open("/dev/full", "wb") as full:
            status, _, err = tool.run(*args, stdout=full)
        equal((args, status), (args, 1))
        equal(err.count("\n"), 1)
        contains(err, "No space left")
        status, _, err = tool.run(*args, before=("sh", "-c", 'exec "$@" >&-', "sh"))
        equal((args, status), (args, 1))
        contains(err, "cannot be written")


def test_reader_that_has_gone(tool):
    for args in (("help",), ("gpus", "--json", *tool.fake(2)), ("gpus", "--watch", *tool.fake(1)),
                 ("doctor", "--quick")):
        ends = os.pipe()
        os.close(ends[0])
        status, _, err = tool.run(*args, stdout=ends[1])
        os.close(ends[1])
        equal((args, err), (args, ""))
        # Something may be wrong with this machine.
        assert status == 0 or (args[0] == "doctor" and status == 3), (args, status)


def test_no_escapes_in_a_file(tool):
    for args in (("help",), ("help", "--man"), ("version",), ("gpus", *tool.fake(2)),
                 ("doctor", "--quick")):
        assert "\033" not in tool.run(*args, env={"TERM": "xterm"})[1]


def test_closed_descriptors(tool):
    # Nothing of ours may get the numbers of the standard ones.
    status, out, err = tool.run("gpus", *tool.fake(1), before=("sh", "-c", 'exec "$@" <&-', "sh"))
    equal((status, err), (0, ""))
    contains(out, "fake:0")


run(globals())
