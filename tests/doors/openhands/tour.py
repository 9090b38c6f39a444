"""RemoteWorkspace and AsyncRemoteWorkspace: commands, files, git."""
import asyncio
import os
import pathlib
import tempfile

from openhands.sdk.workspace.remote import AsyncRemoteWorkspace, RemoteWorkspace

HOST, KEY = os.environ["OH_HOST"], os.environ["OH_KEY"]
REPO = """git init -q -b main repo && cd repo && git config user.email a@example.org && git config user.name a
echo one >a; echo two >b; echo three >'c d'; git add . && git commit -qm first
echo more >>a; rm b; git mv 'c d' e; echo new >'ü n'; mkdir inner && cd inner && git init -q . && echo q >q"""


def sync(folder):
    work = RemoteWorkspace(host=HOST + "/", api_key=KEY, working_dir="/workspace")
    assert work.alive
    assert work.get_server_info()["title"] == "Caisson"
    done = work.execute_command("echo out; echo err >&2; pwd; exit 3", cwd="/workspace")
    assert (done.exit_code, done.stdout, done.stderr, done.timeout_occurred) == (3, "out\n/workspace\n", "err\n", False), done
    done = work.execute_command("for i in 1 2 3; do echo $i grün; sleep 0.2; done")
    assert done.stdout == "".join(f"{i} grün\n" for i in (1, 2, 3)), done
    done = work.execute_command("seq 300000")
    assert done.stdout == "".join(f"{i}\n" for i in range(1, 300001)), len(done.stdout)
    done = work.execute_command("echo began; sleep 60", timeout=2.0)
    assert done.exit_code == -1 and done.stdout == "began\n", done
    done = work.execute_command("true", cwd="/no/such/folder")
    assert done.exit_code == -1 and "/no/such/folder" in done.stderr, done
    print("commands")

    source, back = folder / "source", folder / "deep/back"
    source.write_bytes(os.urandom(3 << 20))
    sent = work.file_upload(source, "/workspace/new/file.bin")
    assert sent.success and sent.file_size == 3 << 20, sent
    got = work.file_download("/workspace/new/file.bin", back)
    assert got.success and back.read_bytes() == source.read_bytes(), got
    assert not work.file_download("/workspace/nothing", folder / "x").success
    assert not work.file_upload(source, "relative").success
    print("files")

    assert work.execute_command(REPO, cwd="/workspace").exit_code == 0
    changes = [(c.status.value, str(c.path)) for c in work.git_changes("repo")]
    assert changes == [("UPDATED", "a"), ("DELETED", "b"), ("DELETED", "c d"), ("ADDED", "e"), ("ADDED", "inner/q"), ("ADDED", "ü n")], changes
    diff = work.git_diff("repo/a")
    assert (diff.original, diff.modified) == ("one", "one\nmore"), diff
    assert work.git_changes("/workspace/new") == []
    assert work.execute_command("echo x >/workspace/new/x").exit_code == 0
    assert work.git_diff("/workspace/new/x").original is None
    print("git")


async def other():
    work = AsyncRemoteWorkspace(host=HOST, api_key=KEY, working_dir="/workspace")
    assert work.alive
    some = [await work.execute_command(f"echo {i}; exit {i}") for i in range(3)]
    assert [(d.stdout, d.exit_code) for d in some] == [(f"{i}\n", i) for i in range(3)], some
    assert [c.status.value for c in await work.git_changes("repo")].count("DELETED") == 2
    await work.reset_client()
    print("async")


with tempfile.TemporaryDirectory() as name:
    sync(pathlib.Path(name))
asyncio.run(other())
print("end")
