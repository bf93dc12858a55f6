"""Windows job objects: a process and all that it starts, ended together, also by the end of whoever holds the job.

Layouts and numbers: winnt.h, "JOBOBJECT_EXTENDED_LIMIT_INFORMATION" and "Job Objects" of the Windows API.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any, Protocol, cast

SUSPENDED = 0x00000004
"""CREATE_SUSPENDED: nothing of a process runs before it is in its job, so that nothing escapes it."""
NO_WINDOW = 0x08000000
"""CREATE_NO_WINDOW."""

KILL_ON_JOB_CLOSE = 0x2000
_EXTENDED_LIMITS = 9
_ACCOUNTING = 1
_ENDED = 1


class Limits(ctypes.Structure):
    """JOBOBJECT_BASIC_LIMIT_INFORMATION."""

    _fields_ = (
        ("PerProcessUserTimeLimit", ctypes.c_int64),
        ("PerJobUserTimeLimit", ctypes.c_int64),
        ("LimitFlags", ctypes.c_uint32),
        ("MinimumWorkingSetSize", ctypes.c_size_t),
        ("MaximumWorkingSetSize", ctypes.c_size_t),
        ("ActiveProcessLimit", ctypes.c_uint32),
        ("Affinity", ctypes.c_size_t),
        ("PriorityClass", ctypes.c_uint32),
        ("SchedulingClass", ctypes.c_uint32),
    )


class ExtendedLimits(ctypes.Structure):
    """JOBOBJECT_EXTENDED_LIMIT_INFORMATION."""

    _fields_ = (
        ("BasicLimitInformation", Limits),
        ("IoInfo", ctypes.c_uint64 * 6),
        ("ProcessMemoryLimit", ctypes.c_size_t),
        ("JobMemoryLimit", ctypes.c_size_t),
        ("PeakProcessMemoryUsed", ctypes.c_size_t),
        ("PeakJobMemoryUsed", ctypes.c_size_t),
    )


class Accounting(ctypes.Structure):
    """JOBOBJECT_BASIC_ACCOUNTING_INFORMATION."""

    _fields_ = (
        ("Times", ctypes.c_int64 * 4),
        ("TotalPageFaultCount", ctypes.c_uint32),
        ("TotalProcesses", ctypes.c_uint32),
        ("ActiveProcesses", ctypes.c_uint32),
        ("TotalTerminatedProcesses", ctypes.c_uint32),
    )


class Kernel(Protocol):
    """The calls of the system."""

    def call(self, name: str, *arguments: object) -> int:
        """What the function of that name returns; 0 is failure, but for `NtResumeProcess`, where it is success."""
        ...

    def failure(self) -> OSError:
        """What the last call failed with."""
        ...


class Job:
    """The job of one suspended process, which runs from here on.

    Raises: OSError if there can be no job; the process is still suspended then.
    """

    def __init__(self, kernel: Kernel, process: int) -> None:
        """`process` is the handle of a process that was started with `SUSPENDED`."""
        self._kernel = kernel
        self._job = kernel.call("CreateJobObjectW", None, None)
        if not self._job:
            raise kernel.failure()
        try:
            limits = ExtendedLimits()
            limits.BasicLimitInformation.LimitFlags = KILL_ON_JOB_CLOSE
            size = ctypes.sizeof(limits)
            if not kernel.call("SetInformationJobObject", self._job, _EXTENDED_LIMITS, ctypes.byref(limits), size):
                raise kernel.failure()
            if not kernel.call("AssignProcessToJobObject", self._job, process):
                raise kernel.failure()
            if kernel.call("NtResumeProcess", process):
                raise kernel.failure()
        except OSError:
            self.release()
            raise

    def terminate(self) -> bool:
        """False: no process here can be asked to end in a way that all of them understand."""
        return False

    def kill(self) -> None:
        """End all processes of the job at once."""
        if self._job:
            self._kernel.call("TerminateJobObject", self._job, _ENDED)

    def gone(self) -> bool:
        """Whether no process of the job is left."""
        if not self._job:
            return True
        found = Accounting()
        size = ctypes.sizeof(found)
        if not self._kernel.call("QueryInformationJobObject", self._job, _ACCOUNTING, ctypes.byref(found), size, None):
            return False
        return bool(found.ActiveProcesses == 0)

    def release(self) -> None:
        """Let the job go, which ends what is left in it."""
        job, self._job = self._job, 0
        if job:
            self._kernel.call("CloseHandle", job)


if sys.platform == "win32":

    class SystemKernel:
        """The calls of the system itself."""

        def __init__(self) -> None:
            kernel = ctypes.WinDLL("kernel32", use_last_error=True)
            handle, flag, number = ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32
            self._calls = {
                name: _declared(getattr(library, name), result, arguments)
                for library, name, result, arguments in (
                    (kernel, "CreateJobObjectW", handle, (ctypes.c_void_p, ctypes.c_wchar_p)),
                    (kernel, "SetInformationJobObject", flag, (handle, flag, ctypes.c_void_p, number)),
                    (kernel, "QueryInformationJobObject", flag, (handle, flag, ctypes.c_void_p, number, handle)),
                    (kernel, "AssignProcessToJobObject", flag, (handle, handle)),
                    (kernel, "TerminateJobObject", flag, (handle, number)),
                    (kernel, "CloseHandle", flag, (handle,)),
                    (ctypes.WinDLL("ntdll"), "NtResumeProcess", ctypes.c_long, (handle,)),
                )
            }

        def call(self, name: str, *arguments: object) -> int:
            """As `Kernel.call`."""
            # A handle that is null comes as None.
            return self._calls[name](*arguments) or 0

        def failure(self) -> OSError:
            """As `Kernel.failure`."""
            return ctypes.WinError(ctypes.get_last_error())

    def _declared(call: Any, result: Any, arguments: tuple[Any, ...]) -> Callable[..., int | None]:  # noqa: ANN401 - ctypes has no types for them
        call.restype, call.argtypes = result, arguments
        return cast("Callable[..., int | None]", call)
