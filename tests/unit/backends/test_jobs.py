"""Windows job objects, as far as another system can tell: layouts, the order of calls, and what a failure leaves."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import pytest

from agora.backends.jobs import KILL_ON_JOB_CLOSE, Accounting, ExtendedLimits, Job, Limits


class Recorder:
    """The system's calls: writes them down and works but for one."""

    def __init__(self, failing: str = "") -> None:
        self.failing = failing
        self.calls: list[tuple[Any, ...]] = []
        self.flags = 0
        self.running = 2

    def call(self, name: str, *arguments: Any) -> int:
        if name == "SetInformationJobObject":
            self.flags = arguments[2]._obj.BasicLimitInformation.LimitFlags
        if name == "QueryInformationJobObject":
            arguments[2]._obj.ActiveProcesses = self.running
        plain = [argument for argument in arguments if argument is None or isinstance(argument, int)]
        self.calls.append((name, *plain))
        worked = name != self.failing
        return {"CreateJobObjectW": 77 * worked, "NtResumeProcess": not worked}.get(name, int(worked))

    def failure(self) -> OSError:
        return OSError(f"{self.failing} failed")


def names(kernel: Recorder) -> list[str]:
    return [call[0] for call in kernel.calls]


@pytest.mark.skipif(sys.maxsize < 2**32, reason="the sizes are those of 64 bits")
def test_the_layouts_have_the_sizes_that_the_system_expects() -> None:
    assert [ctypes.sizeof(each) for each in (Limits, ExtendedLimits, Accounting)] == [64, 144, 48]
    assert Limits.LimitFlags.offset == 16
    assert Accounting.ActiveProcesses.offset == 40


def test_a_process_runs_only_once_it_is_in_a_job_that_ends_with_its_holder() -> None:
    kernel = Recorder()
    job = Job(kernel, 42)
    assert kernel.calls == [
        ("CreateJobObjectW", None, None),
        ("SetInformationJobObject", 77, 9, ctypes.sizeof(ExtendedLimits)),
        ("AssignProcessToJobObject", 77, 42),
        ("NtResumeProcess", 42),
    ]
    assert kernel.flags == KILL_ON_JOB_CLOSE
    assert not job.terminate()
    assert not job.gone()
    job.kill()
    kernel.running = 0
    assert job.gone()
    job.release()
    job.release()
    assert names(kernel)[4:] == [
        "QueryInformationJobObject",
        "TerminateJobObject",
        "QueryInformationJobObject",
        "CloseHandle",
    ]


@pytest.mark.parametrize("failing", ["SetInformationJobObject", "AssignProcessToJobObject", "NtResumeProcess"])
def test_a_job_that_cannot_be_made_is_let_go_and_the_process_stays_suspended(failing: str) -> None:
    kernel = Recorder(failing)
    with pytest.raises(OSError, match=f"{failing} failed"):
        Job(kernel, 42)
    assert names(kernel)[-2:] == [failing, "CloseHandle"]


def test_without_a_job_nothing_is_let_go() -> None:
    kernel = Recorder("CreateJobObjectW")
    with pytest.raises(OSError, match="CreateJobObjectW failed"):
        Job(kernel, 42)
    assert names(kernel) == ["CreateJobObjectW"]


def test_a_job_that_does_not_answer_is_not_taken_for_gone() -> None:
    kernel = Recorder("QueryInformationJobObject")
    kernel.running = 0
    assert not Job(kernel, 42).gone()
