"""Sessions with everything declared, closed afterwards."""

import pytest

from tools.studio import declare_columns, session_of


@pytest.fixture
def ready():
    """Return what opens a session up to the release."""
    opened = []

    def open_session(table, folder, *, ledger=None, epsilon=1.0):
        found = session_of(table, folder, ledger)
        opened.append(found)
        declare_columns(found.draft)
        found.draft.ask("cost", ["age", "sex", "score"], "", "")
        found.draft.epsilon = epsilon
        if not found.shelf.ledger.exists():
            found.grant("survey", 1.5, 1e-6)
        return found

    yield open_session
    for one in opened:
        one.close()
