"""One browser for each module: playwright keeps an event loop that tests of other modules could not have."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.support.hub.browsing import chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found
