"""dmoj: a traced process per submission under seccomp, on the host's own file system; no container.

python dmoj_loop.py CONFIGURATION SUBMISSION          as any user but root; the problem is `trivial`
"""

import sys
from pathlib import Path

from dmoj import contrib, executors, judgeenv
from dmoj.cli import LocalJudge
from dmoj.judge import Submission
from turns import take_turns


def main() -> None:
    """Starts the judge once; each turn is one submission of one test case."""
    configuration, source = sys.argv[1], Path(sys.argv[2]).read_bytes()
    sys.argv[1:] = ["-c", configuration, "-e", "PY3"]
    judgeenv.load_env(cli=True)
    executors.load_executors()
    contrib.load_contrib_modules()
    judge = LocalJudge()
    said: list[str] = []
    count = 0

    def result(_: object, __: object, result: object) -> None:
        """What its own connection to a site would carry."""
        said.append("3 2" if result.result_flag == 0 else f"flag {result.result_flag}")  # type: ignore[attr-defined]

    judge.packet_manager.test_case_status_packet = lambda position, one: result(judge, position, one)

    def grade(_: object) -> str:
        nonlocal count
        count += 1
        said.clear()
        given = Submission(count, "trivial", "PY3", source, 10.0, 262_144, False, {})
        judge.begin_grading(given, blocking=True, report=lambda _: None)
        return said[0] if said else "nothing"

    take_turns(grade)
    judge.murder()


if __name__ == "__main__":
    main()
