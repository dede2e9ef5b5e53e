"""Cohorts and batches as files: CSV, JSON, JSON lines, Parquet, and a bundle of Gradescope documents."""
