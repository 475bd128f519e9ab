"""The practitioner's page in a browser: it fits a phone and shows numbers under a finger."""

import shutil
import subprocess

import pytest

from headcount import tables
from headcount.tables.example import make_example

PROBE = """<script>addEventListener('load', () => {
  const root = document.documentElement, hits = document.querySelectorAll('.hit');
  hits[hits.length - 1].dispatchEvent(
    new PointerEvent('pointermove', {bubbles: true, clientX: 300, clientY: 300}));
  const tip = document.getElementById('tip');
  parent.postMessage(`wide ${root.scrollWidth} of ${root.clientWidth}; ${tip.textContent}`, '*');
})</script></body>"""
FRAME = """<!doctype html><body><script>
addEventListener('message', e => document.body.append('RESULT: ' + e.data + '.'))
</script><iframe src=page.html style='width:400px;height:800px;border:0'></iframe>"""


@pytest.mark.parametrize("by", ["month:date", "channel"])
def test_the_page_fits_a_phone_and_shows_numbers(tmp_path, by):
    browser = shutil.which("chromium")
    if browser is None:
        pytest.skip("chromium is not installed")
    labelled, messages = make_example(rows=60)
    model = tables.fit(labelled, text="message", label="kind", method="SLD")
    page = model.estimate(messages, by=by).report("Complaints").html
    (tmp_path / "page.html").write_text(page.replace("</body>", PROBE))
    (tmp_path / "frame.html").write_text(FRAME)
    words = ["--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files"]
    words += ["--virtual-time-budget=5000", "--dump-dom", f"file://{tmp_path}/frame.html"]
    done = subprocess.run([browser, *words], capture_output=True, text=True, timeout=120)
    said = done.stdout.rsplit("RESULT: ", 1)[1]
    wide, there = (int(word) for word in said.split(";")[0].split()[1::2])
    assert wide <= there
    assert "counting would say" in said
