# SPDX-License-Identifier: Apache-2.0
"""A picture of each page of the site at 1280 and 400 pixels, light and dark; no page may be wider than a screen of 400.

`make pictures` builds the site and runs it. It needs Debian's chromium and chromium-driver, and the extra `browser`.
"""

import argparse
import sys
from pathlib import Path

from helpers import browser
from helpers.source import ROOT

SITE = ROOT / "build/site"
WIDTHS = (1280, 400)
SCHEMES = ("light", "dark")
MOST_HEIGHT = 6000  # pixels of a page that are shown: Chromium takes minutes for the longest, and has a limit
# What sticks out of the page by itself; in a box that scrolls it may be as wide as it likes.
WIDE = """
const inside = (e) => { for (e = e.parentElement; e; e = e.parentElement)
  if (getComputedStyle(e).overflowX != "visible" && e != document.body && e != document.documentElement) return true; };
return document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll("body *")]
  .filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && !inside(e))
  .map((e) => e.tagName.toLowerCase() + ": " + e.textContent.trim().slice(0, 60)).slice(-3).concat("the page");
"""


def chosen():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--target", type=Path, default=ROOT / "build/pictures", help="the folder of the pictures")
    parser.add_argument("--without", action="store_true", help="only look for what is too wide: no pictures")
    parser.add_argument("pages", nargs="*", type=Path, help="pages instead of all")
    return parser.parse_args()


def too_wide(driver, page, options):
    """Open a page in each width and scheme; return what sticks out of it at 400 pixels."""
    driver.get(page.as_uri())
    found = []
    for width in WIDTHS:
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        found = driver.execute_script(WIDE)  # of the last width, which is the least
        height = min(driver.execute_script("return document.documentElement.scrollHeight"), MOST_HEIGHT)
        for scheme in () if options.without else SCHEMES:
            browser.scheme(driver, scheme)
            name = f"{page.relative_to(SITE).with_suffix('').as_posix().replace('/', '-')}-{width}-{scheme}.png"
            browser.picture(driver, options.target / name, width, height)
    return found


def main():
    options = chosen()
    if not browser.is_there():
        raise SystemExit(browser.WITHOUT)
    pages = [path.resolve() for path in options.pages] or sorted(
        path for path in SITE.rglob("*.html") if not {"_static", "_modules"} & {*path.parts}
    )
    if not pages:
        raise SystemExit(f"{SITE} has no pages: make site")
    options.target.mkdir(parents=True, exist_ok=True)
    with browser.opened() as driver:
        wrong = {page: found for page in pages if (found := too_wide(driver, page, options))}
    for page, found in wrong.items():
        print(f"{page.relative_to(SITE)} is wider than {min(WIDTHS)} pixels: {'; '.join(found)}")
    print(f"{len(pages)} pages, {len(wrong)} too wide; the pictures are in {options.target}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
