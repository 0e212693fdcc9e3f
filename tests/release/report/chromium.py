"""Opening a page in Chromium without a window, and what can be asked of it there."""

import dataclasses
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Dialog, Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser of the system, not one that Playwright would download."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    assert found, "these tests need Chromium: apt-get install chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


@dataclasses.dataclass
class Opened:
    """A page, what it asked for, and what the browser complained of."""

    page: Page
    requests: list[str] = dataclasses.field(default_factory=list)
    complaints: list[str] = dataclasses.field(default_factory=list)

    def ask(self, script: str, argument: Any = None) -> Any:
        return self.page.evaluate(script, argument)


@contextmanager
def opened(browser: Browser, path: Path, width: int = 1280, **context: Any) -> Iterator[Opened]:
    """The file as somebody sees it who opens it in a window of that width."""
    with browser.new_context(viewport={"width": width, "height": 800}, **context) as window:
        seen = Opened(window.new_page())
        seen.page.on("request", lambda request: seen.requests.append(request.url))
        seen.page.on("console", lambda message: seen.complaints.append(message.text))
        seen.page.on("pageerror", lambda error: seen.complaints.append(str(error)))
        seen.page.on("dialog", lambda dialog: _note(seen, dialog))
        seen.page.goto(path.as_uri())
        yield seen


def _note(seen: Opened, dialog: Dialog) -> None:
    seen.complaints.append(dialog.message)
    dialog.dismiss()


# The least contrast of the text on the page, by the formula of WCAG 2, and where it is.
LEAST_CONTRAST = """() => {
  const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = (colour) => {
    const [r, g, b] = numbers(colour).slice(0, 3).map((c) => c / 255)
      .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const colour = getComputedStyle(e).backgroundColor;
      if ((numbers(colour)[3] ?? 1) === 1) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const contrast = (a, b) => {
    const [dark, bright] = [light(a), light(b)].sort((x, y) => x - y);
    return (bright + 0.05) / (dark + 0.05);
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !element.checkVisibility()) continue;
    if (element.namespaceURI.endsWith("svg")) continue;
    found.push([contrast(getComputedStyle(element).color, behind(element)), element.outerHTML]);
  }
  for (const rect of document.querySelectorAll("rect")) {  // shapes need 3 where text needs 4.5
    if (!rect.checkVisibility()) continue;
    found.push([1.5 * contrast(getComputedStyle(rect).fill, behind(rect)), rect.outerHTML]);
  }
  return [found.length, ...found.sort((x, y) => x[0] - y[0])[0]];
}"""
