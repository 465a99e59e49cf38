"""The page on Redis is carried out as written, on a real server."""

import re
from pathlib import Path

import pytest

import coord
from coord.stores.redis.store import grants
from tests.project.docs.test_examples import run
from tests.support.docs.pages import Example, blocks_in, examples_in
from tests.support.servers.redis import SETTINGS, RedisServer

PAGE = "docs/how-to/use-redis.md"


def test_the_redis_page_is_true(redis_server: RedisServer, tmp_path: Path) -> None:
    """Every step of the how-to works as it says, with the rights it names; agents have no others."""
    (users,) = blocks_in(PAGE, "redis")
    install, use = (here(example, redis_server) for example in examples_in(PAGE))
    owner, url = (re.findall(r"redis://[^\"]+", example.code)[0] for example in (install, use))
    with redis_server.admin() as admin:
        try:
            for line in users.splitlines():
                admin.execute_command(*line.split())
            with pytest.raises(coord.NotFound):
                coord.open_store(url)
            run(install, tmp_path)
            run(install, tmp_path)
            assert run(use, tmp_path) == use.output
            with pytest.raises(coord.Unavailable, match="permission"):
                coord.open_store(f"{url}?prefix=somebody_elses")
        finally:
            admin.execute_command("ACL", "DELUSER", "coord_owner", "coord_agent")
            admin.delete(*admin.scan_iter("{coord}:*"))
    told = grants(owner)
    assert [re.sub(r">\S+", ">PASSWORD", line) for line in users.splitlines()] == told


def test_the_settings_on_the_redis_page_make_a_durable_server() -> None:
    """The tests run with the settings that the page asks for."""
    (settings,) = blocks_in(PAGE, "text")
    asked = dict(line.split() for line in settings.splitlines())
    assert asked.pop("maxmemory-policy") == "noeviction", "which is how a server starts"
    assert asked.items() <= SETTINGS.items()


def here(example: Example, server: RedisServer) -> Example:
    """The example with the private server in place of the one on the page."""
    return example._replace(code=example.code.replace("cache.example.org:6379", f"127.0.0.1:{server.port}"))
