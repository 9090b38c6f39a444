"""tour.py - what a program does with the `e2b` package, unmodified: each line of output is one thing that held.

Run by tests/e2b/sdk.py, which says where the package and the daemon are.
"""
import asyncio
import pathlib
import shutil
import tempfile
import time

from e2b import AsyncSandbox, CommandExitException, Sandbox, Template, TimeoutException


def until(holds):
    for _ in range(100):
        if holds():
            return
        time.sleep(0.1)
    raise AssertionError(holds)


def raises(kind, call):
    try:
        call()
    except kind:
        return
    raise AssertionError(kind)


def tour():
    sandbox = Sandbox.create(metadata={"tour": "a b&c"}, envs={"GREETING": "hi"}, allow_internet_access=False)
    assert sandbox.get_info().metadata == {"tour": "a b&c"}
    assert sandbox.sandbox_id in [s.sandbox_id for s in Sandbox.list().next_items()]
    print("life")

    result = sandbox.commands.run("echo $GREETING; pwd")
    assert result.stdout == "hi\n/home/user\n", result
    raises(CommandExitException, lambda: sandbox.commands.run("exit 3"))
    raises(TimeoutException, lambda: sandbox.commands.run("sleep 9", timeout=0.3))
    cat = sandbox.commands.run("cat", background=True, stdin=True)
    sandbox.commands.send_stdin(cat.pid, "typed\n")
    assert sandbox.commands.kill(cat.pid) and not sandbox.commands.kill(1)
    print("commands")

    sandbox.files.write("a/f.txt", "one")
    sandbox.files.write_files([{"path": "a/g", "data": b"g"}, {"path": "a/h", "data": "h"}])
    assert [e.name for e in sandbox.files.list("a")] == ["f.txt", "g", "h"]
    assert sandbox.files.make_dir("a/d") and not sandbox.files.make_dir("a/d")
    watch = sandbox.files.watch_dir("a")
    sandbox.files.write("a/f.txt", "two")
    seen = []
    until(lambda: seen.extend(watch.get_new_events()) or "f.txt" in [e.name for e in seen])
    watch.stop()
    assert sandbox.files.read("a/f.txt") == "two"
    print("files")

    sandbox.pause()
    assert not sandbox.is_running()
    sandbox.connect()
    assert sandbox.is_running()
    snapshot = sandbox.create_snapshot()
    copy = Sandbox.create(snapshot.snapshot_id, allow_internet_access=False)
    assert copy.files.read("a/f.txt") == "two"
    assert copy.kill() and Sandbox.delete_snapshot(snapshot.snapshot_id)
    print("pause, snapshot")
    assert sandbox.kill() and not sandbox.kill()


async def tour_async():
    sandbox = await AsyncSandbox.create(allow_internet_access=False)
    assert (await sandbox.commands.run("echo hi")).stdout == "hi\n"
    await sandbox.files.write("f", "one")
    seen = []
    watch = await sandbox.files.watch_dir(".", on_event=seen.append)
    await sandbox.files.write("f", "two")
    for _ in range(100):
        if seen:
            break
        await asyncio.sleep(0.1)
    await watch.stop()
    assert seen and await sandbox.files.read("f") == "two"
    assert await sandbox.kill()
    print("async")


def tour_template():
    files = tempfile.mkdtemp(dir="/run")
    pathlib.Path(files, "f.txt").write_text("copied")
    template = Template(file_context_path=files).from_base_image().copy("f.txt", "to/").run_cmd("cat to/f.txt to/f.txt >both")
    built = Template.build(template, alias="tour-py", cpu_count=1, memory_mb=512)
    assert built.template_id and built.build_id
    sandbox = Sandbox.create("tour-py", allow_internet_access=False)
    assert sandbox.commands.run("cat both").stdout == "copiedcopied"
    assert sandbox.kill()
    shutil.rmtree(files)
    print("template")


tour()
tour_template()
asyncio.run(tour_async())
print("end")
