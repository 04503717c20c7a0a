"""Options: what Paimon's own jar has is judged here, and in the list that the other tests compare with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from paimon_java import PaimonJava

from lockgate.framework.store.judged_options import judgement_of

pytestmark = pytest.mark.interop
LIST = Path(__file__).parents[1] / "fixtures" / "paimon" / "options.json"


def test_every_option_of_the_jar_is_judged(paimon_java: PaimonJava, tmp_path: Path) -> None:
    names = set(paimon_java.ask(str(tmp_path), "db.t", "options"))
    assert len(names) > 300
    assert sorted(name for name in names if judgement_of(name) is None) == []
    stored = {name for group in json.loads(LIST.read_text()).values() for name in group}
    assert sorted(names - stored) == [], "add them to the stored list too"
