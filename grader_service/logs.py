"""Structured logs: one JSON object per line on standard error, with the ids of what is being worked on."""

import logging
import sys
from typing import Any

import structlog

from grader_service.model.base import neutralise

_LONGEST = 2000


def configure_logs(role: str) -> None:
    """Routes structlog and the standard library's loggers into the same JSON lines."""
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _tame,
    ]
    structlog.configure(
        processors=[*shared, structlog.processors.format_exc_info, structlog.processors.JSONRenderer()],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                structlog.processors.JSONRenderer(),
            ],
        )
    )
    logging.captureWarnings(capture=True)
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    structlog.contextvars.bind_contextvars(role=role)


def _tame(_: Any, __: str, event: dict[str, Any]) -> dict[str, Any]:
    """Text may come from a learner: cut it, and take out what could steer a terminal."""
    return {key: neutralise(value[:_LONGEST]) if isinstance(value, str) else value for key, value in event.items()}
