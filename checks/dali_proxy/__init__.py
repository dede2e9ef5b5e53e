"""The check `dali_proxy`."""
