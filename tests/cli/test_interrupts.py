"""Ctrl-C, and the bar that one watches until then."""

import os
import pty
import re
import signal
import subprocess
import time

from command_line import ENVIRONMENT, SCRIPT, SOURCE, contents

import limbeck.cli.run

COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
STEP_AND_TIME_LEFT = re.compile(
    r"(Distilling|Training models)\s+\S+\s+[1-9]\d*/5000\s+\d+:\d\d:\d\d"
)
STOPPED = re.compile(
    r"limbeck: interrupted; nothing was written\. (\d+) of (\d+) draws of noise had been made, "
    r"worth epsilon=(\d(?:\.\d+)?) at delta=1e-05; .*"
)


def start_in_a_terminal(*arguments, cwd):
    """A process whose standard error is a terminal, and the other end of that."""
    ours, theirs = pty.openpty()
    # Tests in the background ignore SIGINT, and a process would inherit that.
    inherited = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(
        [SCRIPT, *arguments],
        cwd=cwd,
        env={**ENVIRONMENT, "TERM": "xterm", "COLUMNS": "400"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=theirs,
    )
    signal.signal(signal.SIGINT, inherited)
    os.close(theirs)
    return process, ours


def plain(seen):
    """What a terminal was sent, without colours and movements."""
    return COLOUR.sub("", seen.decode(errors="replace")).replace("\r", "\n")


def read_terminal(ours, until=None, seconds=100):
    """What appears on the terminal, until the pattern is found or the process ends."""
    seen, end = b"", time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # how Linux says that nobody holds the other end any more
            break
        if not piece:
            break
        seen += piece
        if until is not None and until.search(plain(seen)):
            break
    else:
        raise TimeoutError(plain(seen)[-2000:])
    return plain(seen)


DISTILL = ("distill", "digits", "--method", "dp-kip", "--per-class", "1", "--epsilon", "1")
DISTILL = (*DISTILL, "--set", "epochs=500", "--set", "sampling_rate=0.1")
GENERATE = ("generate", "digits", "--method", "dp-merf", "--steps", "5000", "--epsilon", "1")


def interrupted(arguments, here):
    """What was seen until the bar moved, and the one line after Ctrl-C."""
    before = contents(here)
    process, terminal = start_in_a_terminal(*arguments, "-o", "out", cwd=here)
    try:
        watched = read_terminal(terminal, until=STEP_AND_TIME_LEFT)
        process.send_signal(signal.SIGINT)
        rest = read_terminal(terminal)
        assert process.wait(timeout=60) == 130
    finally:
        process.kill()
        os.close(terminal)
    assert process.stdout.read() == b""
    assert "Traceback" not in rest
    assert contents(here) == before
    [line] = [line for line in rest.splitlines() if line.startswith("limbeck: ")]
    return watched, line


def test_an_interrupted_run_says_what_it_spent_and_leaves_nothing(here):
    watched, line = interrupted(DISTILL, here)
    assert "Calibrating the noise" in watched
    draws, of, epsilon = STOPPED.fullmatch(line).groups()
    assert 1 <= int(draws) < int(of) == 5000
    assert 0 < float(epsilon) < 1


def test_a_generator_that_is_interrupted_has_spent_all_of_its_budget_before(here):
    _, line = interrupted(GENERATE, here)
    draws, of, epsilon = STOPPED.fullmatch(line).groups()
    assert draws == of == "2"
    assert 0.99 < float(epsilon) <= 1


def test_an_interrupt_before_the_work_is_one_line(limbeck_here, here, monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(limbeck.cli.run, "open_private", interrupted)
    before = contents(here)
    ran = limbeck_here("distill", *SOURCE, "--epsilon", 1, "-o", "out")
    assert (ran.code, ran.out) == (130, "")
    assert ran.err == "limbeck: interrupted; nothing was written\n"
    assert contents(here) == before
