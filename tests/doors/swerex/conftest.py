"""Their execution tests against a sandbox: the fixtures that start a server of theirs, with ours in its place."""
import json
import os
import pathlib
import urllib.request

import pytest
from swerex.runtime.abstract import BashAction, CloseBashSessionRequest, Command, CreateBashSessionRequest
from swerex.runtime.remote import RemoteRuntime

BASE, TOKEN = os.environ["REX_BASE"], os.environ["REX_TOKEN"]


class _Action(BashAction):
    timeout: float | None = 5


class _Command(Command):
    timeout: float | None = 5


def ask(verb, **body):
    request = urllib.request.Request(f"{BASE}/{verb}", json.dumps(body).encode(), {"X-API-Key": TOKEN, "Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


class Both(type(pathlib.Path())):
    """A path of both sides: their server is on the machine of the tests, and a sandbox shares no folder with its host."""

    def write_text(self, data, *words, **options):
        ask("write_file", path=str(self), content=data)
        return super().write_text(data, *words, **options)

    def read_text(self, *words, **options):
        return super().read_text(*words, **options) if self.exists() else ask("read_file", path=str(self))["content"]


@pytest.fixture
def tmp_path(tmp_path):
    return Both(tmp_path)


@pytest.fixture
async def remote_runtime():
    runtime = RemoteRuntime(host=BASE, auth_token=TOKEN)
    try:
        yield runtime
    finally:
        await runtime.close()


@pytest.fixture
async def runtime_with_default_session(remote_runtime):
    await remote_runtime.create_session(CreateBashSessionRequest())
    try:
        yield remote_runtime
    finally:
        await remote_runtime.close_session(CloseBashSessionRequest())
