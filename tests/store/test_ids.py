"""A text names a submission or a run by its id or by a beginning that fits no other, on every database alike."""

from contextlib import nullcontext

import pytest
from sqlalchemy import event, insert, select

from grader_service.store.engine import Store
from grader_service.store.ids import AmbiguousId, Named, UnknownId, named, submission_named
from grader_service.store.tables import RunRow, table_of
from tests.conftest import fresh_database
from tests.store.factories import a_submission, accept

DANISH = "template0 locale_provider icu icu_locale 'da'"
"""There `aa` comes after `z`, and small letters before their capitals."""
RUNS = {
    "lms:4711": ["c0ffee01" + "0" * 24],
    "lms:4712": ["beefaa11" + "0" * 24, "beefaa22" + "0" * 24],
    "lms:47": ["beef" + "0" * 28],
    "beef:1": ["beef:1:run"],
    "Lms:4711": ["feed1111" + "0" * 24],
    "lms_4711": ["feed2222" + "0" * 24],
}


@pytest.fixture(scope="module", params=["sqlite", pytest.param("danish", marks=pytest.mark.integration)])
def filled(request, tmp_path_factory):
    """Submissions with runs of these ids; the order of a language is the harder one of PostgreSQL's."""
    database = nullcontext(f"sqlite:///{tmp_path_factory.mktemp('ids')}/grader.db")
    if request.param == "danish":
        database = fresh_database(request.getfixturevalue("postgres"), template=DANISH)
    with database as url:
        store = Store(url)
        store.migrate()
        for number, (submission_id, runs) in enumerate(RUNS.items()):
            accept(store, a_submission(submission_id=submission_id, learner=f"l{number}"))
            _rename(store, submission_id, runs)
        yield store
        store.close()


def _rename(store, submission_id, runs):
    """Gives a submission runs of these ids in place of its own."""
    of_it = table_of(RunRow).c.submission_id == submission_id
    with store.transaction() as connection:
        row = dict(connection.execute(select(table_of(RunRow)).where(of_it)).mappings().one())
        connection.execute(table_of(RunRow).delete().where(of_it))
        connection.execute(insert(table_of(RunRow)), [row | {"run_id": run_id} for run_id in runs])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("lms:4711", Named("lms:4711")),
        ("lms:47", Named("lms:47")),  # an id goes before what it is the beginning of
        ("Lms:", Named("Lms:4711")),
        ("lms_", Named("lms_4711")),  # no wildcard
        (RUNS["lms:4711"][0], Named("lms:4711", RUNS["lms:4711"][0])),
        ("c0ff", Named("lms:4711", RUNS["lms:4711"][0])),
        ("beefa", "two runs"),
        ("beefaa1", Named("lms:4712", RUNS["lms:4712"][0])),
        ("beef:", "its own"),
        ("beef", {"beef:1", "lms:47", "lms:4712"}),
        ("lms:471", {"lms:4711", "lms:4712"}),
        ("feed", {"Lms:4711", "lms_4711"}),
        ("c0f", None),
        ("lms:4711x", None),
        ("lms%", None),
        ("LMS:4711", None),
        ("", None),
        ("a\0bcd", None),
        ("x" * 129, None),
    ],
)
def test_what_a_text_names(filled, text, expected):
    """Also where an order for people would scatter what begins alike."""
    if isinstance(expected, Named):
        assert named(filled, text) == expected
        assert submission_named(filled, text) == expected.submission_id
    elif isinstance(expected, str):
        submission_id = {"two runs": "lms:4712", "its own": "beef:1"}[expected]
        assert submission_named(filled, text) == submission_id
        with pytest.raises(AmbiguousId):
            named(filled, text)
    else:
        with pytest.raises(UnknownId if expected is None else AmbiguousId) as raised:
            submission_named(filled, text)
        if expected is not None:
            assert {one.submission_id for one in raised.value.candidates} == expected
            assert all(str(one) in str(raised.value) for one in raised.value.candidates)


def test_a_message_names_five(store):
    """And says that there are others."""
    for number in range(7):
        accept(store, a_submission(submission_id=f"many:{number}", learner=None))
    with pytest.raises(AmbiguousId, match="Give more characters") as raised:
        submission_named(store, "many:")
    assert [one.submission_id for one in raised.value.candidates] == [f"many:{number}" for number in range(5)]
    assert "many:4 and others" in str(raised.value)


def test_both_tables_are_asked_by_their_indexes(filled):
    """In a database's own language too."""
    asked = []

    @event.listens_for(filled.engine, "before_cursor_execute")
    def keep(connection, cursor, statement, parameters, context, many):
        if statement.startswith("SELECT"):
            asked.append((statement, parameters))

    submission_named(filled, "c0ff")
    event.remove(filled.engine, "before_cursor_execute", keep)
    explain = "explain query plan " if filled.is_sqlite else "explain "
    with filled.transaction() as connection:
        if not filled.is_sqlite:
            connection.exec_driver_sql("set local enable_seqscan = off")
        plans = [
            " ".join(str(row[-1]) for row in connection.exec_driver_sql(explain + statement, parameters))
            for statement, parameters in asked
        ]
    assert len(plans) == 4
    for plan in plans:
        assert ("SEARCH" if filled.is_sqlite else "Index Cond") in plan, plan
