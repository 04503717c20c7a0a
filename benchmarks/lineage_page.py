"""How long a browser that already runs takes to open a page, as it does for a person who follows a link."""

from __future__ import annotations

import http.server
import json
import subprocess
import tempfile
import threading
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

# The least page of a browser: a line of text, laid out.
BLANK = """<!doctype html><html><p>text</p><script>
requestAnimationFrame(() => {
  document.body.getBoundingClientRect();
  document.documentElement.dataset.opened = Math.round(performance.now());
});
</script></html>"""
_FIGURES = {
    "page_open_ms": ("page", "opened"),
    "page_blank_ms": ("blank", "opened"),
    "page_script_ms": ("page", "ran"),
    "page_whole_ms": ("page", "whole"),
}
_WARM_UP, _ROUNDS, _SECONDS = 2, 9, 120
# The clock of a frame starts when it is sent to its address, as that of a window does.
_OPENER = """<!doctype html><html><body><script>
const wait = () => new Promise(done => setTimeout(done, 10));
async function open(name, last) {
  const frame = document.createElement("iframe");
  frame.width = 1200; frame.height = 800; frame.src = name;
  document.body.append(frame);
  const noted = () => frame.contentDocument?.documentElement?.dataset ?? {};
  while (!noted()[last]) await wait();
  const times = {...noted()};
  frame.remove();
  return times;
}
(async () => {
  const found = [];
  for (let round = 0; round < ROUNDS; round++)
    found.push({blank: await open("blank.html", "opened"), page: await open("page.html", "whole")});
  await fetch("found", {method: "POST", body: JSON.stringify(found)});
})();
</script></body></html>"""


class _Handler(http.server.SimpleHTTPRequestHandler):
    def __init__(self, *arguments: Any, found: list[Any], done: threading.Event, folder: Path) -> None:
        self._found, self._done = found, done
        super().__init__(*arguments, directory=str(folder))

    def do_POST(self) -> None:
        self._found += json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(204)
        self.end_headers()
        self._done.set()

    def log_message(self, *_: Any) -> None:
        pass


def opened_in_a_running_browser(browser: str, page: Path) -> dict[str, float]:
    """Return medians in ms: `page` and the `blank.html` next to it are opened in turn, in frames."""
    page.with_name("opener.html").write_text(_OPENER.replace("ROUNDS", str(_WARM_UP + _ROUNDS)))
    found: list[dict[str, dict[str, str]]] = []
    done = threading.Event()
    handler = partial(_Handler, found=found, done=done, folder=page.parent)
    with (
        http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server,
        tempfile.TemporaryDirectory() as profile,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_address[1]}/opener.html"
        options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}"]
        process = subprocess.Popen(
            [browser, *options, "--remote-debugging-port=0", address],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            if not done.wait(_SECONDS):
                raise RuntimeError(f"the browser opened no pages in {_SECONDS} s")
        finally:
            process.kill()
            process.wait()
            server.shutdown()
    rounds = found[_WARM_UP:]
    return {
        figure: median(float(each[which][noted]) for each in rounds)
        for figure, (which, noted) in _FIGURES.items()
    }
