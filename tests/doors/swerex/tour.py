"""RemoteDeployment as SWE-agent uses it: a sandbox of the token's own, from start to stop."""
import asyncio
import os
import pathlib
import tempfile

from swerex.deployment.config import RemoteDeploymentConfig, get_deployment
from swerex.exceptions import CommandTimeoutError, NonZeroExitCodeError, SessionExistsError
from swerex.runtime.abstract import BashAction, BashInterruptAction, Command, CreateBashSessionRequest, ReadFileRequest, UploadRequest, WriteFileRequest


async def main():
    deployment = get_deployment(RemoteDeploymentConfig(auth_token=os.environ["REX_TOKEN"], host=os.environ["REX_BASE"], timeout=5))
    await deployment.start()
    assert await deployment.is_alive()
    runtime = deployment.runtime
    await runtime.write_file(WriteFileRequest(path="/tmp/rc", content="export FROM_RC=yes PS1='mine> '\necho sourced\n"))
    made = await runtime.create_session(CreateBashSessionRequest(startup_source=["/tmp/rc"], startup_timeout=10))
    assert "sourced" in made.output, made
    try:
        await runtime.create_session(CreateBashSessionRequest())
        raise AssertionError("twice")
    except SessionExistsError:
        pass

    async def run(command, **more):
        return await runtime.run_in_session(BashAction(command=command, timeout=20, **more))
    assert (await run("echo $FROM_RC")).output == "yes\n"
    assert (await run("cd /tmp && export X='a b' && f() { echo \"f $1\"; }")).exit_code == 0
    assert (await run("f \"$X\"; pwd")).output == "f a b\n/tmp\n"
    assert (await run("echo grün '!' \\\\ \"'\"")).output == "grün ! \\ '\n"
    assert (await run("PS1='(venv) '$PS1; echo in")).output == "in\n"
    assert (await run("seq 200000 | tail -1; exit_code() { return 7; }; exit_code", check="silent")).exit_code == 7
    big = await run("head -c 300000 /dev/zero | tr '\\0' x")
    assert len(big.output) == 300000, len(big.output)
    try:
        await run("false", error_msg="it failed")
        raise AssertionError("no error")
    except NonZeroExitCodeError as error:
        assert str(error).startswith("it failed: Command 'false' failed with exit code 1"), error
    try:
        await runtime.run_in_session(BashAction(command="echo before; sleep 60", timeout=0.5))
        raise AssertionError("no timeout")
    except CommandTimeoutError:
        pass
    interrupted = await runtime.run_in_session(BashInterruptAction())
    assert "before" in interrupted.output, interrupted
    assert (await run("echo after")).output == "after\n"
    print("session")

    done = await runtime.execute(Command(command=["sh", "-c", "echo $A-$HOME; exit 3"], env={"A": "b", "PATH": "/usr/bin:/bin"}))
    assert (done.stdout, done.exit_code) == ("b-\n", 3), done
    try:
        await runtime.execute(Command(command=["no-such-program"]))
        raise AssertionError("no error")
    except FileNotFoundError:
        pass
    with tempfile.TemporaryDirectory() as folder:
        tree = pathlib.Path(folder, "tree")
        (tree / "sub").mkdir(parents=True)
        (tree / "sub/a.txt").write_text("a\n" * 100000)
        (tree / "b.bin").write_bytes(bytes(range(256)))
        await runtime.upload(UploadRequest(source_path=str(tree), target_path="/work/tree"))
    assert (await runtime.read_file(ReadFileRequest(path="/work/tree/sub/a.txt"))).content == "a\n" * 100000
    assert (await run("cksum </work/tree/b.bin; ls -A /tmp")).output == "1313719201 256\nrc\n"
    assert (await runtime.read_file(ReadFileRequest(path="/work/tree/b.bin", errors="backslashreplace"))).content.endswith("\\xff")
    print("files")
    await deployment.stop()
    print("end")


asyncio.run(main())
