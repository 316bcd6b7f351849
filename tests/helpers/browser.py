# SPDX-License-Identifier: Apache-2.0
"""Debian's Chromium without a window, driven by PyPI's selenium: `pip install '.[browser]'`."""

import importlib.util
import os
import shutil
from contextlib import contextmanager

import pytest

READY = "const done = arguments[0]; (function look() { document.documentElement.dataset.ready === undefined ? " \
    "setTimeout(look, 5) : requestAnimationFrame(() => setTimeout(() => done(performance.now()))); })();"  # fmt: skip
WITHOUT = "no browser: apt-get install chromium chromium-driver, pip install '.[browser]'"


def is_there():
    """Whether a page can be opened here."""
    return all(map(shutil.which, ("chromium", "chromedriver"))) and importlib.util.find_spec("selenium") is not None


def need():
    """Skip without a browser; with L0RT_TEST_BROWSER=1, fail."""
    if not is_there():
        (pytest.fail if os.environ.get("L0RT_TEST_BROWSER") == "1" else pytest.skip)(WITHOUT)


@contextmanager
def opened(width=1280, height=900):
    """Yield a browser; it has a folder of its own for what it writes, and no network that it would ask."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for word in (
        "headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", "disable-background-networking",
        "hide-scrollbars", "force-device-scale-factor=1", f"window-size={width},{height}",
    ):  # fmt: skip
        options.add_argument(f"--{word}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        browser.set_script_timeout(120)
        yield browser
    finally:
        browser.quit()


def show(browser, path):
    """Open a page of `l0rt memory view`; return the milliseconds until it is drawn."""
    browser.get(path.as_uri())
    return browser.execute_async_script(READY)


def scheme(browser, name):
    """Make the browser prefer light or dark."""
    media = {"features": [{"name": "prefers-color-scheme", "value": name}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)


def picture(browser, path, width, height=None):
    """Write a picture of the page, whole or of a height."""
    size = {"width": width, "height": height or 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    if height is None:
        size["height"] = browser.execute_script("return document.documentElement.scrollHeight")
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.execute_async_script("setTimeout(() => requestAnimationFrame(() => arguments[0]()), 300);")
    browser.save_screenshot(str(path))
