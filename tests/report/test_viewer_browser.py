"""The viewer in headless Chromium: what a reader can see, click, and reach by keyboard alone.

Run with `pytest -m browser`; skips where chromium, chromedriver or selenium is not installed.
"""

import shutil
from itertools import pairwise

import pytest

from nemo_tau2.report.viewer import write_viewer
from tests.report import rows
from tests.report.rows import call, row, said, write

pytestmark = pytest.mark.browser

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1300,1000",
]
HOSTILE = rows.HOSTILE.removesuffix("\ud800")  # the driver cannot carry a lone surrogate
DIFF = {
    "side": "agent", "table": "users", "row": "u1",
    "state": '{"name": "Ann", "plan": {"seats": ["1C"]}}',
    "gold": '{"name": "Ann", "plan": {"seats": ["9Z"]}}',
}  # fmt: skip
BOOK = {"actor": "assistant", "name": "book", "arguments": {}, "errored": False, "writes": True}
CHANGES = [
    {"turn": 0, "tools": [{"name": "verify"}, {"name": "get_user"}]},
    {"turn": 1, "tools": [{"name": "get_user"}, {"name": "book"}]},
]
UNTOUCHED = {"side": "agent", "table": "orders", "row": "o1", "state": "{}", "gold": "unchanged"}


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (chromium and driver):
        pytest.skip("chromium and chromedriver are not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield browser
    browser.quit()


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    output = [
        said("user", f"{HOSTILE} hello"),
        *call(HOSTILE, HOSTILE, HOSTILE),
        said("assistant", HOSTILE),
    ]
    broken = {
        "breakdown": {"DB": 0.0},
        "db_match": False,
        "db_differences": 3,
        "db_diff": [DIFF, UNTOUCHED],
    }
    stored = [
        row(trial=0),
        row(trial=1, reward=0.0, reward_info=broken, num_turns=9),
        row(trial=2, reward=0.0, masked=True, num_turns=7),
        row(task="10", trial=0, num_turns=5),
        row(task=HOSTILE, domain=HOSTILE, group_id=HOSTILE, stop_reason=HOSTILE, reward=0.0,
            turn_tiers=[HOSTILE] * 2, call_tiers=[[HOSTILE], []], turn_output_indices=[1, 3],
            response={"output": output},
            reward_info={"db_match": False, "db_diff": [DIFF | {"table": HOSTILE, "state": HOSTILE}]},
            user_calls=[{"name": HOSTILE, "arguments": {HOSTILE: HOSTILE}, "output": HOSTILE, "turn": 0}]),
        row(task="wide", domain="retail", turn_rewards=[0.5] * 60, turn_tiers=["soft_match"] * 60),
        row(task="changing", domain="retail", reward=0.0, tool_changes=CHANGES)
        | {"task": {"gold_actions": [BOOK], "null_solvable": False}},
        *(row(task=f"many{n}", domain="retail") for n in range(108)),
    ]  # fmt: skip
    write_viewer([write(folder / "rollouts.jsonl", stored)], folder / "page.html")
    return (folder / "page.html").as_uri()


@pytest.fixture
def visit(browser, page):
    """Opens a view and waits for it; afterwards the console must be silent and nothing fetched."""

    def go(view):
        browser.get("about:blank")
        browser.get(page + view)
        shown(browser, view or "#overview")
        return browser

    yield go
    assert browser.get_log("browser") == []
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0
    assert browser.execute_script("return window.pwned") is None
    assert find_all(browser, "img, iframe, object, body script:not([type])") == []


def shown(browser, view):
    from selenium.webdriver.support.ui import WebDriverWait

    script = "return document.documentElement.dataset.shown"
    WebDriverWait(browser, 20).until(lambda b: b.execute_script(script) == view, view)


def find_all(browser, css):
    return browser.find_elements("css selector", css)


def find(browser, css):
    return browser.find_element("css selector", css)


def pick(browser, css, value):
    from selenium.webdriver.support.ui import Select

    Select(find(browser, css)).select_by_value(value)


def keys(browser, *names):
    from selenium.webdriver.common.keys import Keys

    browser.switch_to.active_element.send_keys(*(getattr(Keys, name) for name in names))


def column(browser, n):
    return [cell.text for cell in find_all(browser, f".rollouts tbody tr > :nth-child({n})")]


def cells(browser, caption):
    """The rows of the table with this caption, as texts."""
    script = """return [...document.querySelectorAll('table')].filter(t => t.caption?.textContent
        .startsWith(arguments[0])).map(t => [...t.rows].map(r => [...r.cells].map(c => c.textContent)))[0]"""
    return browser.execute_script(script, caption)


def test_patterns_are_tabled_by_gold_actions_and_by_tool(visit):
    browser = visit("#overview?domain=retail")
    assert cells(browser, "Patterns by number of gold actions")[-1] == ["1", "1", "1", "1"]
    assert cells(browser, "Patterns by tool") == [["tool", "skipped tool call"], ["book", "1"]]
    assert cells(browser, "Owed to, by rule")[1:] == [["policy: undecided", "1"]]


def test_a_rollout_shows_where_its_tools_changed(visit):
    browser = visit("#rollout/6")
    assert cells(browser, "Where the visible tools changed")[1:] == [
        ["0", "verify, get_user", "–", "2"],
        ["1", "book", "verify", "2"],
    ]
    assert "undecided, counted as policy" in find(browser, "main").text


def test_no_two_series_of_a_chart_look_the_same(visit):
    browser = visit("#overview")
    script = """return [...document.querySelectorAll('.legend svg.swatch')].map(
        e => e.getAttribute('class') + e.firstElementChild.outerHTML)"""
    looks = browser.execute_script(script)
    assert len(looks) == len(set(looks)) >= 5


VIEWS = ["", "#rollouts", "#rollout/1", "#rollout/2", "#rollout/4", "#rollout/5"]


@pytest.mark.parametrize("view", VIEWS)
def test_landmarks_headings_and_names(visit, view):
    browser = visit(view)
    assert len(find_all(browser, "main")) == len(find_all(browser, "h1")) == 1
    assert find(browser, "header nav a[aria-current=page]").text
    levels = [int(h.tag_name[1]) for h in find_all(browser, "main :is(h1, h2, h3, h4)")]
    assert levels[0] == 1
    assert all(below - above <= 1 for above, below in pairwise(levels))
    unnamed = [
        control.get_attribute("outerHTML")
        for control in find_all(
            browser, "a, button, select, input, summary, svg[role], [role=region]"
        )
        if control.is_displayed() and not (control.accessible_name or control.text)
    ]
    assert unnamed == []
    ids = [e.get_attribute("id") for e in find_all(browser, "[id]")]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("width", [1300, 500])
def test_wide_content_scrolls_in_its_own_box(visit, view, width):
    browser = visit(view)
    browser.set_window_size(width, 1000)
    script = "const e = document.documentElement; return [e.scrollWidth, e.clientWidth]"
    scroll, client = browser.execute_script(script)
    browser.set_window_size(1300, 1000)
    assert scroll <= client


def test_overview_shows_intervals_denominators_and_warnings(visit):
    browser = visit("")
    assert len(find_all(browser, "svg .whisker")) > 0
    assert len(find_all(browser, "svg .bounds")) > 0, "a masked trial leaves pass^k open"
    assert "were not graded" in find(browser, ".warnings").text
    pick(browser, "#domain", "retail")
    shown(browser, "#overview?domain=retail")
    assert browser.switch_to.active_element.get_attribute("id") == "domain"
    bar = find(browser, "figure a[*|href*='stop=user_stop']")
    browser.execute_script("arguments[0].focus()", bar)
    keys(browser, "ENTER")
    shown(browser, "#rollouts?domain=retail&stop=user_stop")
    assert find(browser, "#count").text.startswith("110 of 115 rollouts")


def test_filters_sorting_pages_and_the_address(visit):
    browser = visit("#rollouts")
    assert find(browser, "#count").text == "115 of 115 rollouts, 1 to 100 shown"
    browser.execute_script("document.querySelector('.pages button:last-child').focus()")
    keys(browser, "ENTER")
    assert len(column(browser, 1)) == 15
    assert browser.switch_to.active_element.text == "Previous page"
    pick(browser, "#filter-domain", "airline")
    assert find(browser, "#count").text == "4 of 115 rollouts, 1 to 4 shown"
    assert find(browser, "#status").get_attribute("textContent") == find(browser, "#count").text
    assert [*zip(column(browser, 1), column(browser, 3), strict=True)] == [
        ("1", "0"), ("1", "1"), ("1", "2"), ("10", "0"),
    ]  # fmt: skip
    head = find(browser, ".rollouts thead th:nth-child(7)")
    browser.execute_script("arguments[0].querySelector('button').focus()", head)
    keys(browser, "ENTER")
    assert (column(browser, 7), head.get_attribute("aria-sort")) == (
        ["2", "5", "7", "9"],
        "ascending",
    )
    keys(browser, "SPACE")
    assert (column(browser, 7), head.get_attribute("aria-sort")) == (
        ["9", "7", "5", "2"],
        "descending",
    )
    assert browser.current_url.endswith("#rollouts?domain=airline&sort=turns&desc=1")
    pick(browser, "#filter-outcome", "masked")
    assert column(browser, 4) == ["○ masked"]
    find(browser, "#filter-text").send_keys("nothing like it")
    assert find(browser, "#count").text == "0 of 115 rollouts"


def test_keyboard_alone_reaches_a_rollout(visit):
    browser = visit("#rollouts?outcome=failed&domain=airline")
    keys(browser, "TAB")
    assert browser.switch_to.active_element.text == "Skip to the content"
    keys(browser, "ENTER")
    for _ in range(40):
        keys(browser, "TAB")
        if browser.switch_to.active_element.get_attribute("href") is not None:
            break
    assert browser.switch_to.active_element.text == "1"
    keys(browser, "ENTER")
    shown(browser, "#rollout/1?outcome=failed&domain=airline")
    assert browser.switch_to.active_element.tag_name == "h1"
    assert browser.title.startswith("airline, task 1, trial 1")
    browser.back()
    shown(browser, "#rollouts?outcome=failed&domain=airline")


def test_rollout_folds_calls_and_shows_credit_diff_and_siblings(visit):
    browser = visit("#rollout/1")
    strips = [r.text.split() for r in find_all(browser, "#credit-title ~ .scroll tbody tr")]
    assert [s[0] for s in strips] == [
        "tier", "reward", "grpo", "rloo_norm", "mt_grpo", "gtpo", "gtpo_hybrid", "turn_rloo",
    ]  # fmt: skip
    assert strips[2] == ["grpo", "−0.71", "−0.71"]
    fields = [r.text for r in find_all(browser, ".diff tbody tr")]
    assert fields == ['plan.seats[0] − "1C" + "9Z"']
    assert "1 more rows differ" in find(browser, "#database-title ~ div").text
    details = find(browser, "details.call")
    assert "Ann" not in details.text
    find(details, "summary").click()
    assert "Ann" in details.text
    pick(browser, "#measure", "tier")
    assert "tier of each turn" in find(browser, "#group-title ~ div caption").text
    pick(browser, "#beside", "0")
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(browser, 10).until(lambda b: len(find_all(b, ".dialogue")) == 2)
    assert [d.text.splitlines()[0] for d in find_all(browser, ".dialogue")] == [
        "trial 1 ✗ failed",
        "trial 0 ✓ passed",
    ]
    find(browser, "details.prompt summary").click()
    WebDriverWait(browser, 10).until(lambda b: "Be kind." in find(b, "details.prompt").text)


def test_masked_rollout_says_so(visit):
    browser = visit("#rollout/2")
    text = find(browser, "main").text
    assert "it broke" in text
    assert "teaches nothing" in text


def test_hostile_rollout_is_text(visit):
    browser = visit("#rollout/4")
    for summary in find_all(browser, "main summary"):
        summary.click()
    text = find(browser, "main").text
    assert text.count("<img src=x onerror=window.pwned=1>") >= 6


def test_next_follows_the_filter(visit):
    browser = visit("#rollout/0?domain=airline")
    browser.find_element("link text", "Next").click()
    shown(browser, "#rollout/1?domain=airline")
    assert "2 of 4" in find(browser, ".steps").text


@pytest.mark.parametrize(("theme", "dark"), [("light", False), ("dark", True)])
def test_themes(visit, theme, dark):
    browser = visit("")
    pick(browser, "#theme", theme)
    colour = find(browser, "body").value_of_css_property("background-color")
    assert (int(colour.split("(")[1].split(",")[0]) < 128) is dark


def test_no_such_rollout(visit):
    assert "No such rollout" in find(visit("#rollout/99999"), "main").text
