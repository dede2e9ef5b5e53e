"""The service around a grading: intake, runner, judge, sweeper. No Celery in here; `grader_service.queue` adapts it."""
