"""tour_code.py - what a program does with the `e2b-code-interpreter` package, unmodified: each line of output is one thing that held.

Run by tests/e2b/sdk.py, which says where the package and the daemon are.
"""
import asyncio
import io
import os
import sys
import tarfile
import threading

from e2b import NotFoundException, TimeoutException
from e2b_code_interpreter import AsyncSandbox, Sandbox


def raises(kind, call):
    try:
        call()
    except kind:
        return
    raise AssertionError(kind)


def tour():
    with Sandbox.create(envs={"GREETING": "hi"}, allow_internet_access=False) as sandbox:
        said, results = [], []
        done = sandbox.run_code("import os\nprint(os.environ['GREETING'])\nx = 41", on_stdout=said.append)
        assert (done.logs.stdout, [m.line for m in said], done.error) == (["hi\n"], ["hi\n"], None), done
        done = sandbox.run_code("x += 1\nx", on_result=results.append)
        assert (done.text, done.execution_count, results[0].is_main_result) == ("42", 2, True), done
        done = sandbox.run_code("1 / 0")
        assert (done.error.name, done.error.value) == ("ZeroDivisionError", "division by zero") and "line 1" in done.error.traceback, done
        html = sandbox.run_code("from IPython.display import display, HTML\ndisplay(HTML('<b>'))\n[1, 2]").results
        assert (html[0].html, html[1].json, html[1].formats()) == ("<b>", [1, 2], ["text", "json"]), html
        print("code")

        context = sandbox.create_code_context(cwd="/tmp")
        assert sandbox.run_code("import os; os.getcwd()", context=context).text == "/tmp"
        assert sandbox.run_code("x", context=context).error.name == "NameError"
        assert context.id in [c.id for c in sandbox.list_code_contexts()]
        sandbox.run_code("y = 1", context=context)
        sandbox.restart_code_context(context)
        assert sandbox.run_code("y", context=context).error.name == "NameError"
        sandbox.remove_code_context(context)
        raises(NotFoundException, lambda: sandbox.run_code("y", context=context))
        print("contexts")

        raises(TimeoutException, lambda: sandbox.run_code("import time; time.sleep(60)", timeout=1))
        assert sandbox.run_code("x", timeout=20).text == "42"
        print("interrupt")

        timer = threading.Timer(1, sandbox.kill)
        timer.start()
        raises(TimeoutException, lambda: sandbox.run_code("import time; time.sleep(60)"))
        print("killed")


def tour_jupyter(folder):
    """With ipykernel in the image: here it is brought along."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz", compresslevel=1) as tar:
        tar.add(folder, "site")
    with Sandbox.create(envs={"PYTHONPATH": "/home/user/site"}, allow_internet_access=False) as sandbox:
        sandbox.files.write("site.tar.gz", archive.getvalue())
        sandbox.commands.run("tar xzf site.tar.gz")
        assert sandbox.run_code("get_ipython().__class__.__name__").text == "ZMQInteractiveShell"
        done = sandbox.run_code("print('a')\n%time 1 + 1", envs={"V": "1"})
        assert done.logs.stdout[0].startswith("a\n") and done.text == "2", done
        assert sandbox.run_code("{'a': 1}").results[0].json == {"a": 1}
        assert sandbox.run_code("import os; os.environ.get('V', 'none')").text == "none"
        assert sandbox.run_code("1 / 0").error.name == "ZeroDivisionError"
        context = sandbox.create_code_context(cwd="/tmp")
        assert sandbox.run_code("x = 1\n%pwd", context=context).text == "/tmp"
        sandbox.restart_code_context(context)
        assert sandbox.run_code("x", context=context).error.name == "NameError"
        raises(TimeoutException, lambda: sandbox.run_code("y = 5\nimport time; time.sleep(60)", timeout=1))
        assert sandbox.run_code("y", timeout=20).text == "5"
        print("jupyter")


async def tour_async():
    async with await AsyncSandbox.create(allow_internet_access=False) as sandbox:
        done = await sandbox.run_code("await __import__('asyncio').sleep(0, 7)")
        assert done.text == "7", done
        assert [c.language for c in await sandbox.list_code_contexts()] == ["python"]
        print("async")


tour()
asyncio.run(tour_async())
if "JUPYTER" in os.environ:
    tour_jupyter(os.environ["JUPYTER"])
print("end", file=sys.stdout)
