"""The author kit, as far as it needs no sandbox: targets, evidence for tests, cases and the properties of judging."""
