"""Celery and Redis: the only place that knows them. Messages are wake-ups; the SQL row is the truth."""
