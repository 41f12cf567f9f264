"""The log: each line has a time, a level and the id of the request that it belongs to, as text or as JSON."""

from __future__ import annotations

import json
import logging
import logging.config
import time
from contextvars import ContextVar
from typing import Any

from sparingly.live.agent.errors import AgentError

LEVELS = ("debug", "info", "warning", "error", "critical")

request_id: ContextVar[str] = ContextVar("request_id", default="-")
"""The id of the request that is being served; threads that serve it have it, too."""

access = logging.getLogger("sparingly.access")


def configure(level: str = "warning", form: str = "text", *, access_log: bool = False) -> None:
    """Write the log of this process to the standard error stream."""
    if level not in LEVELS:
        raise AgentError(f"--log-level {level!r} is unknown: the levels are {', '.join(LEVELS)}")
    if form not in FORMATS:
        raise AgentError(f"--log-format {form!r} is unknown: the formats are {' and '.join(FORMATS)}")
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {"lines": {"()": FORMATS[form]}},
            "handlers": {
                "stderr": {"class": "logging.StreamHandler", "formatter": "lines", "stream": "ext://sys.stderr"}
            },
            "root": {"level": level.upper(), "handlers": ["stderr"]},
            "loggers": {access.name: {"level": "INFO" if access_log else "CRITICAL"}},
        }
    )


class TextFormatter(logging.Formatter):
    """`2026-11-16T15:35:00.123Z WARNING [4f1c...] sparingly.live...: message`, and a traceback below it.

    A line break in a message is shown as `\\n`, so that nobody's input looks like a line of its own.
    """

    def format(self, record: logging.LogRecord) -> str:
        message = record.getMessage().strip().replace("\r", "\\r").replace("\n", "\\n")
        line = f"{_time(record)} {record.levelname} [{request_id.get()}] {record.name}: {message}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = {
            "time": _time(record),
            "level": record.levelname,
            "request": request_id.get(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        return json.dumps(fields | getattr(record, "request_fields", {}))


FORMATS = {"text": TextFormatter, "json": JsonFormatter}


def _time(record: logging.LogRecord) -> str:
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03d}Z"
