"""The check `output_contract`."""
