"""A person without a mouse: reaches buttons of the page with Tab, and sees where the focus is."""

from typing import Any

from playwright.sync_api import Page, expect

from tests.support.hub.browsing import PATIENCE_MS

TABS_MAX = 200
CONTAINED = ("words", "near", "label")
FOCUSED = """wanted => {
  const element = document.activeElement;
  const style = getComputedStyle(element), box = element.getBoundingClientRect();
  const around = element.closest("article, li, .line, aside, section, header");
  const inSight = box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
  return {
    act: element.dataset.act ?? "",
    words: element.id === "content" ? "" : (element.getAttribute("aria-label") ?? element.innerText).trim(),
    near: wanted.near && `${around?.innerText ?? ""} ${around?.previousElementSibling?.innerText ?? ""}`,
    label: element.closest("label")?.innerText ?? "",
    submits: element.matches("dialog form .primary"),
    lost: element === document.body,
    seen: inSight && element.checkVisibility() && element.matches(":focus-visible")
      && style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1,
  };
}"""
ENDED = f"""async () => {{
  const end = performance.now() + {PATIENCE_MS};
  const problem = () => document.querySelector("dialog .problem")?.innerText;
  while (document.querySelector("dialog form") && !problem()) {{
    if (performance.now() > end) throw new Error("the form stays open, and says nothing");
    await new Promise(requestAnimationFrame);
  }}
  return {{problem: problem() ?? "", told: Boolean(document.querySelector("dialog"))}};
}}"""
"""Waits until a form is sent or refused."""
DRAWN = """offset => import("/static/core/store.js").then(async (store) => {
  const frame = () => new Promise(requestAnimationFrame);
  while (store.liveState().offset < offset) await frame();
  await frame();
  await frame();
})"""


class Keyboard:
    """Presses keys on a page, and nothing else."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.performed: list[str] = []

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def type(self, text: str) -> None:
        self.page.keyboard.type(text)

    def focused(self, **wanted: Any) -> dict[str, Any]:
        """Return what is known about the element with the focus; what is near it, if that is wanted."""
        found: dict[str, Any] = self.page.evaluate(FOCUSED, wanted)
        return found

    def tab_until(self, **wanted: Any) -> dict[str, Any]:
        """Press Tab until the focus is where it has these values; texts need to be contained only."""
        passed = []
        for _ in range(TABS_MAX):
            found = self.focused(**wanted)
            if all(_fits(name, found[name], value) for name, value in wanted.items()):
                assert found["seen"], f"nobody sees the focus on {found}"
                return found
            passed.append(f"{found['act']}:{found['words'][:30]}")
            self.press("Tab")
        raise AssertionError(f"Tab does not reach {wanted}: {passed}")

    def jump(self, name: str) -> None:
        """Show a view, an agent, a task or a file by its name."""
        self.press(":")
        self.type(name)
        self.press("Enter")
        self.page.locator("main .skeleton").wait_for(state="detached")

    def act(self, name: str, words: str = "", near: str = "", **typed: str) -> None:
        """Reach the button of an act by Tab, and perform it."""
        self.tab_until(act=name, words=words, near=near)
        self.press("Enter")
        self.submit(name, **typed)

    def choose(self, name: str, choice: str, words: str = "", near: str = "", **typed: str) -> None:
        """Perform an act of a menu."""
        self.tab_until(act="more", words=words, near=near)
        self.press("Enter")
        self.type(choice)
        self.press("Enter")
        self.submit(name, **typed)

    def submit(self, name: str, **typed: str) -> None:
        """Fill in the open form, and send it."""
        self.page.locator(f'dialog form[data-act="{name}"]').wait_for()
        for label, text in typed.items():
            self.tab_until(label=label.replace("_", " "))
            self.press("Control+a")
            self.type(text)
        self.tab_until(submits=True)
        self.press("Enter")
        ended = self.page.evaluate(ENDED)
        assert not ended["problem"], f"{name}: {ended}"
        if ended["told"]:
            self.press("Enter")
            expect(self.page.get_by_role("dialog")).to_have_count(0)
        self.performed.append(name)

    def see(self, offset: int) -> None:
        """Wait until the page has drawn an entry; the focus is not lost over it."""
        self.page.evaluate(DRAWN, offset)
        assert not self.focused()["lost"], f"the focus is lost after {self.performed[-1]}"


def _fits(name: str, found: Any, wanted: Any) -> bool:
    return bool(wanted in found if name in CONTAINED else wanted == found)
