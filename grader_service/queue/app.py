"""The Celery applications: that of workers, and the one that sends answers. Both take JSON only."""

from typing import Any

from celery import Celery

from grader_service.settings import Settings

RUN_QUEUES = ("grader.run.preflight", "grader.run.live", "grader.run.regrade")
PREFLIGHT_QUEUES = RUN_QUEUES[:1]
"""Of a runner that takes nothing else."""
JUDGE_QUEUES = ("grader.judge.preflight", "grader.judge.live", "grader.judge.regrade")
_VISIBILITY_S = 600
_SILENT_S = 10
"""A broker that has not answered for so long is behind a dead connection; a new one is made."""


def make_app(settings: Settings) -> Celery:
    """What wakes workers up: one message in hand, acknowledged when its work is done. It keeps no results."""
    app = _app(settings.broker_address())
    app.conf.update(
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_channel_error_retry=True,  # a broker that is full refuses for a while; no reason to end
        worker_cancel_long_running_tasks_on_connection_loss=False,
        task_acks_late=True,
        task_acks_on_failure=True,
        task_acks_on_timeout=True,
        task_reject_on_worker_lost=False,
        worker_prefetch_multiplier=1,
        worker_enable_remote_control=False,
        worker_hijack_root_logger=False,
        worker_soft_shutdown_timeout=settings.soft_shutdown_s,
        worker_enable_soft_shutdown_on_idle=False,
    )
    return app


def make_answers_app(settings: Settings) -> Celery:
    """What sends answers: to results of platforms' tasks, and to queues that platforms named."""
    url = settings.results_address()
    app = _app(url, backend=url)
    app.conf.update(
        result_serializer="json",
        result_expires=settings.result_days * 86_400,
        # An answer that Redis does not take at once goes back into the outbox; nothing should wait for it.
        result_backend_transport_options={"visibility_timeout": _VISIBILITY_S, "retry_policy": {"max_retries": 1}},
        redis_socket_timeout=_SILENT_S,
        redis_socket_connect_timeout=_SILENT_S,
        redis_socket_keepalive=True,
        redis_retry_on_timeout=True,
        redis_backend_health_check_interval=_SILENT_S,
    )
    return app


def _app(broker: str, **options: Any) -> Celery:
    app = Celery("grader", broker=broker, **options)
    transport = {
        # A message here is a wake-up: delivered late it finds work to do, delivered twice it finds none.
        "visibility_timeout": _VISIBILITY_S,
        "queue_order_strategy": "priority",
        "unacked_restore_interval": 10,
        "unacked_restore_throttle": 1,
        "unacked_mutex_expire": 5,  # before the next look, since it is not released
        "socket_timeout": _SILENT_S,
        "socket_connect_timeout": _SILENT_S,
        "socket_keepalive": True,
        "health_check_interval": _SILENT_S,
        "retry_on_timeout": True,
    }
    app.conf.update(
        accept_content=["json"],
        task_serializer="json",
        result_accept_content=["json"],
        broker_transport="grader_service.queue.transport:Transport",
        broker_transport_options=transport,
        task_ignore_result=True,
        task_create_missing_queues=True,
        timezone="UTC",
        enable_utc=True,
    )
    return app
