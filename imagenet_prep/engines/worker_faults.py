"""The errors of tasks and of workers, for every engine."""

from __future__ import annotations

from imagenet_prep.errors import DataProblemsError, PrepError, UsageError, WorkerError
from imagenet_prep.escaping import traced
from imagenet_prep.storage.refusals import AGAIN, LIMITS, as_error

TRIES = 3
"""How often a task may lose its worker before it counts as failed."""

FEWER_WORKERS = "fewer --workers"


def fault(error: Exception) -> PrepError:
    """An exception as a PrepError: unchanged, as a system error, as a lack of memory or of a
    library, or with its traceback.
    """
    if isinstance(error, PrepError):
        return error
    if isinstance(error, MemoryError):
        hint = f"try {FEWER_WORKERS}, or free some memory, {AGAIN}"
        return PrepError("a worker ran out of memory", str(error), hint)
    if isinstance(error, ImportError):
        hint = "install this library again, or the Python package that needs it"
        return UsageError("a worker can't import a library", str(error), hint)
    refused = as_error(error) if isinstance(error, OSError) else None
    if refused is not None:
        return refused
    return WorkerError(f"an unexpected error in a worker: {error!r}", traced(error))


def no_worker(error: Exception) -> PrepError:
    """The error for a system that can't start another process or thread."""
    reason = str(error)
    raise_limit = "raise the limit of processes (ulimit -u, or the container's)"
    hint = f"{raise_limit}, or try {FEWER_WORKERS}, {AGAIN}"
    if isinstance(error, OSError):
        reason = error.strerror or reason
        hint = LIMITS.get(error.errno or 0, hint)
    return PrepError("a worker can't be started", f"the system says: {reason}", hint)


def died(cause: str, hint: str) -> PrepError:
    """The error of a task that lost its worker too often."""
    return DataProblemsError("every worker process that tried this task died", cause, hint)
