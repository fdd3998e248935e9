"""The servers that the tests share. TGI_BUILD_DIR names the build under test; scripts/test_http sets it."""

import pytest

from client import Api
from gateway import Daemon, Gateway, Home, model_variant


@pytest.fixture(scope="session")
def home():
    home = Home()
    yield home
    home.remove()


@pytest.fixture(scope="session")
def daemon(home):
    """tgid with the demo model."""
    daemon = Daemon(home)
    yield daemon
    daemon.end()


@pytest.fixture(scope="session")
def gateway(home, daemon):
    """`tgi serve` with its defaults and prompt log-probabilities, shared by all tests that only ask."""
    gateway = Gateway(home, ["--enable-prefill-logprobs"])
    yield gateway
    gateway.end()


@pytest.fixture(scope="session")
def api(gateway):
    return Api(gateway.url)


@pytest.fixture
def serve(home, daemon):
    """Starts more gateways on the shared daemon: serve(flag, ..., env={...})."""
    started = []

    def start(*flags, **more):
        started.append(Gateway(home, flags, **more))
        return started[-1]

    yield start
    for gateway in started:
        gateway.end()


class Pair:
    """A daemon and a gateway that belong to one test."""

    def __init__(self, daemon, gateway):
        self.daemon, self.gateway = daemon, gateway
        self.api = Api(gateway.url)


@pytest.fixture
def pair():
    """Starts a daemon and a gateway of the test's own: pair(flag, ..., daemon_flags=(...))."""
    ours = []

    def start(*flags, daemon_flags=(), model="demo"):
        home = Home()
        ours.append(home.remove)
        daemon = Daemon(home, model, daemon_flags)
        ours.append(daemon.end)
        gateway = Gateway(home, flags, model=model)
        ours.append(gateway.end)
        return Pair(daemon, gateway)

    yield start
    for undo in reversed(ours):
        undo()


@pytest.fixture(scope="session")
def endless_model(tmp_path_factory):
    """The demo model with a context of 4096 and no end in sight: it stops at max_new_tokens."""
    return model_variant(tmp_path_factory.mktemp("endless"), 4096, [3])


@pytest.fixture
def slow_pair(pair, endless_model):
    """A pair whose model takes about 2 ms for a token and never ends by itself: for what has to happen meanwhile."""
    return lambda *flags, **more: pair(*flags, model=endless_model,
                                       daemon_flags=("--backend", "reference",
                                                     *more.pop("daemon_flags", ())), **more)


@pytest.fixture
def home_of_its_own():
    home = Home()
    yield home
    home.remove()
