# SPDX-License-Identifier: Apache-2.0
"""The page of `l0rt memory view`: nothing in it runs but its own script, and a browser shows what is true."""

import base64
import itertools
import json
import re
import struct
import zlib

import numpy as np
import pytest
from l0rt.cli.memory import page, snapshot
from l0rt.cli.memory.history import histories

from helpers import browser
from helpers.cli import l0rt
from helpers.snapshots import BASE, entry, frame, trained, write
from helpers.snapshots import snapshot as made

HOSTILE = '</script><script>window.ran = 1</script><img src=x onerror="window.ran = 1">'


def text_of(value, name="x.pickle"):
    """Return the page of a snapshot."""
    return page.page(name, *histories(value))


def data(text, number):
    """Return the header and the columns of one of a page's data."""
    packed = re.search(rf'<script type="application/octet-stream" id="data-{number}">([\w+/=]*)</script>', text)
    raw = zlib.decompress(base64.b64decode(packed.group(1)))
    length = struct.unpack_from("<I", raw)[0]
    header = json.loads(raw[8 : 8 + length])
    columns = {
        name: np.frombuffer(raw, kind, count, 8 + length + offset)
        for name, (kind, count, offset) in header["columns"].items()
    }
    return header, columns


def hostile():
    """Return a snapshot whose every text is HTML."""
    trace = [
        entry("alloc", BASE, 100, 1, 0, [frame(HOSTILE, 1, HOSTILE)], HOSTILE),
        entry(HOSTILE, 0, 0, 2),
        entry("oom", 0, 1 << 40, 3, device_free=7),
    ]
    notes = [{"device": 0, "time_us": 1, "name": HOSTILE, "stage": "START"}]
    return {"segments": [], "device_traces": [trace], "external_annotations": notes}


def test_the_page_needs_nothing_else():
    text = text_of(made(trained(300)))
    assert re.findall(r"""(?:src|href)\s*=""", text.partition("<script>")[0]) == []
    assert "http" not in re.sub(r'http-equiv="Content-Security-Policy"', "", text)
    assert "url(" not in text
    assert "@import" not in text


def test_the_policy_allows_its_script_and_its_style_and_no_address():
    text = text_of(hostile(), HOSTILE)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text).group(1)
    script, style = (re.search(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL).group(1) for tag in ("script", "style"))
    assert policy == (
        f"default-src 'none'; script-src '{page.digest(script)}'; style-src '{page.digest(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    assert "onerror" not in text
    assert text.count("<script") == 3  # what devices share, one device, the program
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", script)


def test_the_columns_are_those_of_the_history():
    value = made(trained(2000))
    stacks, (history,) = histories(value)
    text = page.page("x", stacks, [history])
    header, columns = data(text, 1)
    assert (header["peak"], header["entries"]) == (history.peak, history.entries)
    born = columns["first"][0] + np.cumsum(columns["born"]) if len(columns["born"]) else columns["born"]
    assert np.array_equal(born, history.columns["born"])
    assert np.array_equal(born + columns["life"], history.columns["freed"])
    assert np.array_equal(born + columns["life"] + columns["wait"], history.columns["done"])
    low, high = columns["address_low"].astype(np.uint64), columns["address_high"].astype(np.uint64)
    assert np.array_equal(high << np.uint64(32) | low, history.columns["address"])
    assert np.array_equal(np.cumsum(columns["time"]), history.time - history.time[0])
    assert data(text, 0)[0]["devices"] == ["device 0"]


def test_times_that_are_far_apart_are_kept():
    trace = [entry("alloc", BASE + 512 * k, 8, time) for k, time in enumerate((5, 6, 6 + (1 << 40)))]
    assert data(text_of({"segments": [], "device_traces": [trace]}), 1)[1]["time"].tolist() == [0, 1, 1 + (1 << 40)]


def test_view_writes_a_page_beside_the_file_or_where_it_is_told(tmp_path):
    path = write(tmp_path / "a.pickle", made(trained(300)))
    result = l0rt("memory", "view", path)
    assert (result.returncode, result.stdout, result.stderr) == (0, f"{tmp_path / 'a.html'}\n", ""), result
    assert l0rt("memory", "view", path, "-o", tmp_path / "b.html").returncode == 0
    assert (tmp_path / "a.html").read_text() == (tmp_path / "b.html").read_text()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a.html", "a.pickle", "b.html"]
    assert (tmp_path / "a.html").read_text().startswith("<!DOCTYPE html>")


@pytest.fixture(scope="module")
def chromium():
    browser.need()
    with browser.opened() as opened:
        yield opened


def shown(chromium, tmp_path, value, name="x.html"):
    """Show the page of a snapshot; return the histories."""
    path = tmp_path / name
    stacks, found = histories(value)
    path.write_text(page.page("x.pickle", stacks, found))
    browser.show(chromium, path)
    return found


def quiet(chromium):
    """Return what the browser complains of."""
    return [one["message"] for one in chromium.get_log("browser")]


def run(chromium, script):
    """Run a script, and wait until the page is drawn again."""
    return chromium.execute_async_script(
        f"const done = arguments[0]; const value = (() => {{ {script} }})(); "
        "requestAnimationFrame(() => requestAnimationFrame(() => done(value)));"
    )


def test_a_browser_has_the_same_bytes_at_each_moment(chromium, tmp_path):
    machine = trained(2500, 3)
    value = made(machine)
    value["device_traces"] = [machine.trace[333:]]
    (history,) = shown(chromium, tmp_path, value)
    for name in ("allocated", "pending", "reserved"):
        assert run(chromium, f"return Array.from(l0rt.device.{name})") == getattr(history, name).tolist()
    assert run(chromium, "return l0rt.device.peakMoment") == history.peak_moment
    assert run(chromium, "return l0rt.moment") == history.peak_moment
    figures = chromium.find_element("id", "figures").text
    assert f"{history.peak:,} bytes, entry {history.peak_moment:,}" in figures
    assert f"{history.peak / 1024**2:.2f} MiB" in figures
    assert quiet(chromium) == []


def test_a_browser_shows_at_each_moment_what_python_computes(chromium, tmp_path):
    (history,) = shown(chromium, tmp_path, made(trained(2500, 4)))
    for moment in (0, 1, 700, 1801, history.entries):
        run(chromium, f"l0rt.go({moment})")
        alive = history.alive(moment)
        assert run(chromium, "return l0rt.flame.bytes[0]") == history.allocated[moment]
        assert run(chromium, "return l0rt.flame.counts[0]") == len(alive)
        assert run(chromium, "return l0rt.segments.total") == history.reserved[moment]
        sums = {node: nbytes for node, (nbytes, _) in history.sums("node", moment).items()}
        leaves = run(chromium, "return Array.from(l0rt.flame.bytes)")
        inner = set(history.stacks.parents)
        assert {node: leaves[node] for node in sums if node not in inner} == {
            node: nbytes for node, nbytes in sums.items() if node not in inner
        }
        first = run(chromium, "return l0rt.details.rows[0].hidden ? '' : l0rt.details.rows[0].cells[0].textContent")
        largest = history.columns["size"][alive].max() if len(alive) else 0
        assert first == (f"{largest / 1024**2:.2f} MiB" if largest else "")
    run(chromium, "document.getElementById('grouping').value = 'tag'; l0rt.flame.reset(); l0rt.later()")
    tags = {history.tags.texts()[tag]: nbytes for tag, (nbytes, _) in history.sums("tag", history.entries).items()}
    names = run(chromium, "return l0rt.device.tags.map((name, k) => [name, l0rt.flame.bytes[k + 1]])")
    assert {name: nbytes for name, nbytes in names if nbytes} == tags
    assert quiet(chromium) == []


def test_a_browser_shows_names_of_nested_ranges_beside_each_other(chromium, tmp_path):
    trace = [entry("alloc", BASE + 512 * k, 8, k) for k in range(100)]
    ranges = [(0, "all", "START"), (0, "first", "START"), (0, "short", "START"), (0, "short", "END"),
              (40, "first", "END"), (40, "second", "START"), (80, "second", "END"), (99, "all", "END")]  # fmt: skip
    notes = [{"device": 0, "time_us": time, "name": name, "stage": stage} for time, name, stage in ranges]
    shown(chromium, tmp_path, {"segments": [], "device_traces": [trace], "external_annotations": notes})
    run(chromium, """
      window.drawn = [];
      const original = CanvasRenderingContext2D.prototype.fillText;
      CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
        drawn.push([text, x, x + this.measureText(text).width]);
        return original.call(this, text, x, y);
      };
      l0rt.timeline.stale = true;
      l0rt.later();
    """)
    names = {"all", "first", "short", "second"}
    places = [one for one in run(chromium, "return drawn") if one[0] in names]
    assert [name for name, _, _ in places] == ["all", "first", "second"]
    assert all(end <= begin for (_, _, end), (_, begin, _) in itertools.pairwise(places)), places
    assert quiet(chromium) == []


def test_a_browser_moves_by_keys_and_finds_what_is_searched(chromium, tmp_path):
    (history,) = shown(chromium, tmp_path, made(trained(2500, 5)))
    body = chromium.find_element("tag name", "body")
    body.send_keys("p")
    body.send_keys("\ue014\ue014\ue012")  # right, right, left
    assert run(chromium, "return l0rt.moment") == min(history.peak_moment + 1, history.entries)
    body.send_keys("\ue010")  # End
    assert run(chromium, "return l0rt.moment") == history.entries
    assert f"{history.entries:,} of {history.entries:,} entries" in chromium.find_element("id", "moment").text
    body.send_keys("/")
    chromium.switch_to.active_element.send_keys("weights")
    run(chromium, "l0rt.find(); l0rt.later()")
    weights = history.sums("tag", history.entries)[history.tags.number("weights")]
    assert f"{weights[1]} live allocations found" in chromium.find_element("id", "found").text
    chromium.switch_to.active_element.send_keys("\ue00c")  # Escape
    run(chromium, "l0rt.find(); l0rt.later()")
    assert chromium.find_element("id", "found").text == ""
    address = int(history.columns["address"][history.alive(history.entries)[0]])
    chromium.find_element("id", "search").send_keys(hex(address + 1))
    run(chromium, "l0rt.find(); l0rt.later()")
    assert "1 live allocation found" in chromium.find_element("id", "found").text
    chromium.find_element("css selector", "#table tbody tr").click()
    assert hex(address) in chromium.find_element("id", "details").text
    assert quiet(chromium) == []


def pointer(chromium, what, element, x, y):
    """Let a real pointer come to a place of an element, x and y from its corner; ``what``: click, move or drag."""
    from selenium.webdriver import ActionChains

    element = chromium.find_element("id", element)
    chromium.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
    size = element.size
    chain = ActionChains(chromium, duration=0).move_to_element_with_offset(
        element, x - size["width"] // 2, y - size["height"] // 2)  # fmt: skip
    if what == "drag":
        chain = chain.click_and_hold().move_by_offset(100, 0).release()
    (chain.click() if what == "click" else chain).perform()
    run(chromium, "return 0")


def test_a_browser_follows_the_pointer(chromium, tmp_path):
    (history,) = shown(chromium, tmp_path, made(trained(2500, 6)))
    run(chromium, "l0rt.go(0)")
    width = chromium.find_element("id", "timeline").size["width"]
    pointer(chromium, "click", "timeline", width // 2, 60)
    moment = run(chromium, "return l0rt.moment")
    assert abs(moment - history.entries / 2) < history.entries / 10
    tip = chromium.find_element("id", "tip")
    assert f"allocated {history.allocated[moment] / 1024**2:.2f} MiB" in tip.text
    pointer(chromium, "drag", "timeline", width // 2, 60)
    dragged = run(chromium, "return l0rt.moment")
    assert dragged > moment
    pointer(chromium, "move", "timeline", width // 4, 60)
    assert run(chromium, "return l0rt.moment") == dragged  # it only hovers
    assert tip.is_displayed()
    pointer(chromium, "move", "flame", 20, 8)
    assert "100.0 %" in tip.text
    assert f"{len(history.alive(dragged))} allocations" in tip.text
    pointer(chromium, "move", "segments", 20, 5)
    assert "segment 1 of" in tip.text
    pointer(chromium, "click", "segments", 5, 5)
    assert hex(int(history.columns["address"][run(chromium, "return l0rt.chosen")])) in (
        chromium.find_element("id", "details").text
    )
    chromium.find_element("id", "search").click()
    chromium.switch_to.active_element.send_keys("weights")
    run(chromium, "return new Promise((go) => (function look() { "  # a moment after the last key
        "document.getElementById('found').textContent ? go() : setTimeout(look, 5); })())")  # fmt: skip
    weights = history.sums("tag", dragged)[history.tags.number("weights")]
    assert f"{weights[1]} live allocations found" in chromium.find_element("id", "found").text
    assert not tip.is_displayed()
    assert quiet(chromium) == []


def test_a_browser_shows_html_as_text(chromium, tmp_path):
    path = tmp_path / "x.html"
    path.write_text(text_of(hostile(), HOSTILE))
    browser.show(chromium, path)
    run(chromium, "l0rt.go(1); l0rt.choose(0)")
    assert HOSTILE in chromium.title
    assert HOSTILE in chromium.find_element("id", "details").text
    assert HOSTILE in chromium.find_element("id", "table").text
    assert HOSTILE in chromium.find_element("id", "legend").text
    assert chromium.execute_script("return window.ran") is None
    assert chromium.execute_script("return document.images.length") == 0
    run(chromium, "l0rt.go(2)")
    assert HOSTILE in chromium.find_element("id", "entry").text
    run(chromium, "l0rt.go(3)")
    assert "out of memory: requested 1024.00 GiB, free 7 bytes" in chromium.find_element("id", "entry").text
    assert quiet(chromium) == []


def test_a_browser_shows_devices_ends_and_sizes_of_all_kinds(chromium, tmp_path):
    first, second = trained(400, 1, 0), trained(500, 2, 1)
    value = made(first, second)
    value["device_traces"] = [first.trace, []]
    found = shown(chromium, tmp_path, value)
    run(chromium, "const chosen = document.getElementById('device'); chosen.value = 1; "
        "chosen.dispatchEvent(new Event('change'))")  # fmt: skip
    run(chromium, "return new Promise((go) => setTimeout(go, 300))")
    assert run(chromium, "return l0rt.device.name") == "device 1"
    assert run(chromium, "return l0rt.device.allocated[0]") == found[1].allocated[0] == second.allocated
    assert "no history" in chromium.find_element("id", "entry").text
    for trace in ([], [entry("snapshot", 0, 0, 1)], [entry("alloc", 0, 0, 1)], [entry("alloc", 1 << 63, 1 << 52, 1)]):
        segments = [] if trace else [{"address": 0, "total_size": 1, "blocks": []}]
        shown(chromium, tmp_path, {"segments": segments, "device_traces": [trace]})
        run(chromium, "l0rt.timeline.zoom(0.1); l0rt.segments.zoom(4, null); l0rt.go(1)")
    assert quiet(chromium) == []


def test_a_browser_draws_light_and_dark_and_narrow(chromium, tmp_path):
    """The pictures differ, and nothing is wider than the window."""
    shown(chromium, tmp_path, made(trained(600)))
    backs = []
    for name in ("light", "dark"):
        browser.scheme(chromium, name)
        backs.append(run(chromium, "return getComputedStyle(document.body).backgroundColor"))
        browser.picture(chromium, tmp_path / f"{name}.png", 400)
        assert run(chromium, "return document.documentElement.scrollWidth <= innerWidth")
    assert len(set(backs)) == 2
    assert (tmp_path / "light.png").read_bytes() != (tmp_path / "dark.png").read_bytes()
    chromium.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert quiet(chromium) == []


def test_a_snapshot_read_from_a_file_is_shown_with_its_name(chromium, tmp_path):
    path = write(tmp_path / "a<b>&amp;.pickle", made(trained(200)))
    assert l0rt("memory", "view", path).returncode == 0
    browser.show(chromium, tmp_path / "a<b>&amp;.html")
    assert chromium.find_element("id", "file").text.startswith("a<b>&amp;.pickle, by l0rt ")
    peak = histories(snapshot.load(path))[1][0].peak
    assert run(chromium, "return l0rt.device.allocated[l0rt.device.peakMoment]") == peak
