"""tour_more.py - volumes and secrets with the `e2b` package, unmodified: each line of output is one thing that held.

Run by tests/e2b/sdk.py, which says where the package and the daemon are.
"""
import asyncio

from e2b import AsyncVolume, NotFoundException, Sandbox, Secret, Volume


def raises(kind, call):
    try:
        call()
    except kind as e:
        return e
    raise AssertionError(kind)


def volumes():
    volume = Volume.create("tour")
    assert volume.volume_id in [v.volume_id for v in Volume.list()]
    assert Volume.get_info(volume.volume_id).name == "tour"
    volume.make_dir("d/e", force=True)
    written = volume.write_file("d/f.txt", "hello")
    assert (written.path, written.size, volume.read_file("d/f.txt")) == ("/d/f.txt", 5, "hello"), written
    volume.write_file("d/f.txt", b"\x00again", force=True)
    assert (volume.read_file("d/f.txt", format="bytes"), volume.exists("d/f.txt"), volume.exists("d/g")) == (b"\x00again", True, False)
    assert sorted(e.path for e in volume.list("/d")) == ["/d/e", "/d/f.txt"]
    print("content")

    with Sandbox.create(volume_mounts={"/mnt/data": volume}, allow_internet_access=False) as sandbox:
        assert sandbox.commands.run("ls /mnt/data/d; echo inside >/mnt/data/out").stdout == "e\nf.txt\n"
        assert volume.read_file("out") == "inside\n"
        raises(Exception, lambda: Volume.destroy(volume.volume_id))
    volume.remove("d")
    raises(NotFoundException, lambda: volume.read_file("d/f.txt"))
    assert Volume.connect(volume.volume_id).read_file("/out") == "inside\n"
    assert Volume.destroy(volume.volume_id) and not Volume.destroy(volume.volume_id)
    print("volumes")


async def volumes_async():
    volume = await AsyncVolume.create("tour-async")
    await volume.write_file("f", "x" * 300000)
    assert await volume.read_file("f") == "x" * 300000
    assert await AsyncVolume.destroy(volume.volume_id)
    print("async")


def secrets():
    made = Secret.create("tour-key", "a value of it", metadata={"hosts": "api.example.org", "inject": "header:X-Key"})
    assert (made.name, made.version, made.metadata["hosts"]) == ("tour-key", 1, "api.example.org"), made
    assert Secret.update("tour-key", "another value").version == 2
    assert Secret.get_info(made.secret_id).name == "tour-key" and Secret.exists("tour-key") and not Secret.exists("none")
    assert [s.name for s in Secret.list().next_items()] == ["tour-key"]
    rules = {"api.example.org": [{"transform": {"headers": {"X-Key": Secret.fill("tour-key")}}}]}
    with Sandbox.create(network={"rules": rules}) as sandbox:
        assert "another" not in sandbox.commands.run("env").stdout
    assert "bound" in str(raises(Exception, lambda: Sandbox.create(network={"rules": {"b.example.org": rules["api.example.org"]}})))
    assert "bound to hosts" in str(raises(Exception, lambda: Secret.create("unbound", "a value of it")))
    assert Secret.destroy("tour-key") and not Secret.destroy("tour-key")
    print("secrets")


volumes()
asyncio.run(volumes_async())
secrets()
print("end")
