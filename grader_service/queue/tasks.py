"""The tasks between our own workers. Each is a wake-up that something waits; what, the store decides."""

from collections.abc import Callable

from celery import Celery

RUN_TASK = "grader.run"
JUDGE_TASK = "grader.judge"


def register_run(app: Celery, run_next: Callable[[str], object]) -> None:
    """Queue `grader.run.*`; idempotent, never retried: the store tries again."""

    @app.task(name=RUN_TASK, shared=False)  # type: ignore[untyped-decorator]
    def run(run_id: str) -> None:
        run_next(run_id)  # which may have gone to another worker already


def register_judge(app: Celery, judge_next: Callable[[], object]) -> None:
    """Queue `grader.judge.*`; idempotent, never retried: the store tries again."""

    @app.task(name=JUDGE_TASK, shared=False)  # type: ignore[untyped-decorator]
    def judge(run_id: str) -> None:
        del run_id
        judge_next()
