"""The probe, which runs in a pod and is never imported here."""
