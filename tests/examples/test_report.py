"""The page and the summary of the demo: from plain values, self-contained, with all content escaped."""

import re
from html.parser import HTMLParser

import pytest

VOID = {"meta", "line", "rect", "circle", "br"}


class Wellformed(HTMLParser):
    """Collects tags that open and do not close, and every attribute that could load something."""

    def __init__(self):
        super().__init__()
        self.open, self.loads, self.text = [], [], []

    def handle_starttag(self, tag, attrs):
        # What is followed by hand loads nothing.
        loading = ("src", "xlink:href", "srcset") if tag == "a" else ("src", "href", "xlink:href", "srcset")
        self.loads += [value for name, value in attrs if name in loading]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture
def story():
    from flights import story as s

    made = s.Story(flights=300, wall_seconds=61.4, missed=s.Missed(20, 20, 0))
    for number in range(12):
        planes = 1 if number < 6 else 3
        pins = {"planes": planes, "airports": 1, "weather": 4}
        lag, newest = 0.1 * (number > 6), 4 if number == 11 else planes
        made.batches.append(s.Batch(number, number + 1, 25, 0.5 + number, pins, 2_500_000, lag, newest))
        made.peer.append(s.PeerBatch(number, 25, 1.0))
    steps = [s.Step("files, partitions", 1, 12), s.Step("bytes", 1200, 150_000)]
    made.funnels.append(s.Funnel("A <query>", "SELECT 1 < 2", steps, ["a < 1"], [], ["b = 2"], ["a"], 3, 0.2))
    made.calls.append(s.Call("CALL lake.sys.compact(table => 'f.p')", {"files": 4}, 0.5))
    made.columns = ("tailnum", "model")
    made.with_key, made.without_key = [("N1", "A320")], [("N1", "ABCDEF" * 10)]
    made.check_equal("rows", 1, 1)
    shown = ("flight_id", "tailnum"), [(1, "N545xx")], [(1, "N545UA")]
    made.rights = s.Rights("SELECT 3 < 4", *shown, "SELECT avg(d)", "denied <d>", 10.7, '{"reqUser": "ann"}')
    made.lineage = "<!doctype html><html><body>a graph</body></html>"
    return made


@pytest.fixture
def render():
    from flights.report import render

    return render


def test_page_is_wellformed_and_loads_nothing(story, render):
    page = render(story)
    parser = Wellformed()
    parser.feed(page)
    assert parser.open == []
    assert parser.loads == []
    assert "<script" not in page
    assert "url(" not in page
    assert "prefers-color-scheme: dark" in page


def test_page_escapes_what_it_shows(story, render):
    story.check("<b>bold</b>", False, "x & y")
    page = render(story)
    assert "A &lt;query&gt;" in page
    assert "<b>bold</b>" not in page
    assert "x &amp; y" in page


def test_page_shows_every_part(story, render):
    parser = Wellformed()
    parser.feed(render(story))
    text = " ".join(parser.text)
    wanted = (
        "What a running query sees of a change",
        "How fresh each batch was",
        "How long each batch took",
        "What a query did not have to read",
        "With and without the key",
        "What two users see",
        "Where the columns came from",
        "Maintenance",
        "Checks",
        "About this run",
    )
    places = [text.index(heading) for heading in wanted]
    assert places == sorted(places)
    assert "100 planes updated" in text
    assert "snapshot 3 of 4" in text
    assert "1.2 kB of 150 kB" in text
    assert "With a large dimension" not in text


def test_page_shows_the_large_dimension_when_there_was_one(story, render):
    from flights.story import Big

    story.big = Big(5_000_000, 25, 4.0, [0.5, 0.4, 0.6], [10.0, 12.0, 9.0])
    page = render(story)
    assert "5,000,000 rows" in page
    assert "20.0 times faster" in page


def test_page_of_a_run_without_results(render):
    from flights.story import Story

    parser = Wellformed()
    parser.feed(render(Story()))
    assert parser.open == []


def test_masked_cells_are_marked_and_long_ones_cut(story, render):
    page = render(story)
    assert page.count('class="mask"') == 1
    assert f'title="{"ABCDEF" * 10}"' in page


def test_a_failed_check_fails_the_story_and_is_printed(story):
    from flights.story import Story, summary

    assert story.ok
    assert not Story().ok
    assert not story.check_equal("sum", 3, 4)
    assert not story.ok
    assert "FAILED: sum: 3, expected 4" in summary(story)
    assert re.search(r"checks +1 of 2 hold", summary(story))


def test_rates_leave_out_the_first_batch(story):
    assert story.rows_per_second == pytest.approx(25 / 6.5)
    assert story.peer_rows_per_second == 25


def test_freshness_comes_first(story, render):
    page = render(story)
    first = page[page.index('class="tile"') :]
    assert first.index("100%") < first.index("flights enriched")


def test_the_page_says_when_where_and_with_what_it_was_made(story, render):
    story.about = [("date", "2026-11-22 13:00 UTC"), ("Spark", "4.3.0, master local[2]")]
    page = render(story, docs="../docs")
    assert "4.3.0, master local[2]" in page
    assert 'href="../docs/lookup.md"' in page


def test_steps_that_leave_as_much_are_told_once(story, render):
    from flights.story import Funnel, Step

    steps = [Step(f"files, {name}", 1, 4) for name in ("partitions", "statistics")]
    steps += [Step("files, limit", 0, 4), Step("bytes", 10, 400)]
    story.funnels = [Funnel("Q", "SELECT 1", steps, [], [], [], [], 1, 0.2)]
    page = render(story)
    assert page.count("1 of 4<") == 1
    assert "files, partitions and statistics" in page
    assert "0 of 4" in page
    assert "1 row in 0.20 s" in page


def test_values_are_said_in_words():
    from flights.wording import counted, counts, in_words

    assert (counted(1, "row"), counted(2000, "row")) == ("1 row", "2,000 rows")
    assert counts({"files_rewritten": 4, "snapshot_id": None}) == "files rewritten 4"
    assert counts({"snapshot_id": None}) == "nothing to do"
    told = [in_words(value) for value in (None, True, 1234, {3, 1}, {"a": 1}, [], "x")]
    assert told == ["none", "yes", "1,234", "1, 3", "a: 1", "none", "x"]


def test_bars_have_a_width_and_a_text():
    from flights.charts import grouped_bars, noted_bars

    page = noted_bars(
        [("a", 2.0, "2 s"), ("b", 1.0, "1 s"), ("c", 0.0, "0 s")], ["x", "y", "z"], label="times"
    )
    assert re.findall(r"width:([\d.]+)%", page) == ["100.00", "50.00", "0.00"]
    assert "<caption>times</caption>" in page
    page = grouped_bars(["a", "b"], [[4.0, 2.0], [1.0]], unit="s", label="l", marker=(1, "here"))
    assert re.findall(r"width:([\d.]+)%", page) == ["100.00", "25.00", "50.00"]
    assert page.index("4.00 s") < page.index("here") < page.index("2.00 s")


@pytest.mark.parametrize(("count", "text"), [(12, "12 B"), (1500, "1.5 kB"), (2_340_000, "2.34 MB")])
def test_bytes_are_said_with_units(count, text):
    from flights.story import human_bytes

    assert human_bytes(count) == text
