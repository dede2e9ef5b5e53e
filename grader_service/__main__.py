"""`python -m grader_service` is the `grader` command."""

from grader_service.cli.app import main

main()
