"""A ledger whose users are killed at each system call: ``python ledger_kills.py CASE FOLDER all``.

Without "all", they are killed at the calls that change the disk. Run by test_ledger_kills.py in a
process of its own, as one with threads should not fork. Each case prints what it counted, as JSON.
"""

import json
import shutil
import sys
from pathlib import Path

from dpscreen.privacy.ledger import LedgerProblem, PrivacyLedger, directory
from tools.kills import killed_at_each_call
from tools.ledgers import database, make_ledger


def opens(path):
    try:
        return len(PrivacyLedger(path).entries()) >= 0
    except LedgerProblem:
        return False


def book(ledger, receipts):
    """Book, and write the receipt down: from then on the reservation is confirmed."""
    booked = ledger.reserve(ledger.total / 10**6, purpose="release")
    with receipts.open("a") as stream:
        stream.write(f"{booked.hash}\n")


def book_under_two_names(folder, one, other, watched):
    """Kill bookings under one name, book under the other in between, and look for all of them."""
    receipts, killed = folder / "receipts", PrivacyLedger(one)
    kills = journals = lost = 0
    for _ in killed_at_each_call(lambda: book(killed, receipts), watched):
        kills += 1
        journals += (one / "ledger.db-journal").exists()
        book(PrivacyLedger(other), receipts)
        held = {entry.hash for entry in PrivacyLedger(one).entries()}
        held &= {entry.hash for entry in PrivacyLedger(other).entries()}
        lost += len({*receipts.read_text().split()} - held)
        if lost:
            break
    return {"kills": kills, "journals": journals, "lost": lost, "booked": len(held)}


def booking(folder, watched):
    """The directory and a symbolic link to it, or what is mounted there."""
    one, other = folder / "a.ledger", folder / "b.ledger"
    if not one.exists():
        make_ledger(one)
    if not other.exists():
        other.symlink_to(one)
    return book_under_two_names(folder, one, other, watched)


def hard_link(folder, watched):
    """Two directories with one database, which a ledger refuses unless nobody checks."""
    one, other = make_ledger(folder / "a.ledger").path, folder / "b.ledger"
    other.mkdir()
    (other / "lock").touch()
    (other / "ledger.db").hardlink_to(one / "ledger.db")
    refused = not opens(one) and not opens(other)
    directory.check_one_name = lambda path: None
    return {"refused": refused} | book_under_two_names(folder, one, other, watched)


def creation(folder, watched):
    """A ledger that is being made is whole or refused, and never made over what is there."""
    path, told = folder / "a.ledger", []
    for _ in killed_at_each_call(lambda: make_ledger(path), watched):
        there, whole = path.exists(), opens(path)
        told.append(f"{there=} {whole=}")
        if there:
            try:
                make_ledger(path)
            except LedgerProblem:
                assert opens(path) == whole
            else:
                raise AssertionError("a ledger was made over what was there")
            shutil.rmtree(path)
    return {state: told.count(state) for state in told}


def hot_journal(folder, watched):
    """Leave a journal that has to be rolled back, behind a booking that was never confirmed."""
    ledger = make_ledger(folder / "a.ledger")
    ledger.reserve(ledger.total / 10, purpose="before")
    before = shutil.copytree(ledger.path, folder / "before.ledger")
    kills = killed_at_each_call(
        lambda: ledger.reserve(ledger.total / 10, purpose="killed"), watched
    )
    for _ in kills:
        if database(ledger).read_bytes() != database(before).read_bytes():
            assert (ledger.path / "ledger.db-journal").stat().st_size > 512
            return ledger
        shutil.rmtree(ledger.path)  # a journal that lies there makes the next attempt longer
        shutil.copytree(before, ledger.path)
    raise AssertionError("no kill came between the journal and the end")


def recovery(folder, watched):
    """Whoever rolls a journal back may be killed as well."""
    torn, path = hot_journal(folder, watched).path, folder / "b.ledger"
    shutil.copytree(torn, path)
    kills = 0
    for _ in killed_at_each_call(lambda: PrivacyLedger(path), watched):
        kills += 1
        found = [one.purpose for one in PrivacyLedger(path).entries()]
        assert found == ["before"], found
        shutil.rmtree(path)
        shutil.copytree(torn, path)
    return {"kills": kills}


if __name__ == "__main__":
    case, where, *every = sys.argv[1:]
    found = globals()[case](Path(where), None if every else Path(where))
    print(json.dumps(found, default=str))
