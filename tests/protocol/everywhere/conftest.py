"""One client for every transport and era; servers are shared by all tests, which keep to namespaces of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.protocol.links import LINKS, Link, Site
from tests.protocol.minded import Minded


@pytest.fixture(scope="session")
def minded() -> Iterator[Minded]:
    """The model of every server of these tests: one that does as it is told."""
    with Minded() as started:
        yield started


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory, minded: Minded) -> Iterator[Site]:
    """Servers as they usually are."""
    made = Site(tmp_path_factory.mktemp("site"), minded.settings)
    yield made
    made.close()


@pytest.fixture(scope="session")
def hasty(tmp_path_factory: pytest.TempPathFactory, minded: Minded) -> Iterator[Site]:
    """Servers that give a call one second."""
    made = Site(tmp_path_factory.mktemp("hasty"), minded.settings | {"limits.call_seconds": 1.0})
    yield made
    made.close()


@pytest.fixture(scope="session")
def wandering(tmp_path_factory: pytest.TempPathFactory, minded: Minded) -> Iterator[Site]:
    """Servers that no setting tells the project."""
    settings = {name: value for name, value in minded.settings.items() if name != "namespace.default"}
    made = Site(tmp_path_factory.mktemp("wandering"), settings)
    yield made
    made.close()


@pytest.fixture(params=LINKS)
def link(request: pytest.FixtureRequest, site: Site) -> Link:
    """Every transport in both eras."""
    return Link(request.param, site)


@pytest.fixture(params=[name for name in LINKS if name.endswith("-legacy")])
def legacy(request: pytest.FixtureRequest, site: Site) -> Link:
    """Every transport, in the era of the handshake."""
    return Link(request.param, site)


@pytest.fixture(params=[name for name in LINKS if name.endswith("-modern")])
def modern(request: pytest.FixtureRequest, site: Site) -> Link:
    """Every transport, in the stateless era."""
    return Link(request.param, site)


@pytest.fixture(scope="session")
def crossing(tmp_path_factory: pytest.TempPathFactory, minded: Minded) -> Iterator[Site]:
    """Servers beside which there are others now and then; those with `shown` in their names are shown to clients."""
    shown = ",".join(f"shown-{link},again-shown-{link},shown-{link}_" for link in LINKS)
    settings = minded.settings | {"gateway.expose": shown}
    made = Site(tmp_path_factory.mktemp("crossing"), settings)
    yield made
    made.close()


@pytest.fixture(params=LINKS)
def crossed(request: pytest.FixtureRequest, crossing: Site) -> Iterator[Link]:
    """Every transport in both eras, beside other servers; there are none when a test begins."""
    file = crossing.place.home / "agora.toml"
    file.write_text("", "utf-8")
    yield Link(request.param, crossing)
    file.write_text("", "utf-8")
