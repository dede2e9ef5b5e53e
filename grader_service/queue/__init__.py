"""Celery and Redis: the only place that knows them. Messages are hints; the SQL row is the truth."""
