"""backend.py - builds the wheel (PEP 517) with the standard library alone: an install needs no network."""
import base64
import hashlib
import io
import pathlib
import tarfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
NAME = "caisson"
ENTRY_POINTS = "[inspect_ai]\ncaisson = caisson.adapters.inspect_ai\n"
EXTRAS = {"inspect": "inspect_ai", "deepagents": "deepagents", "openai-agents": "openai-agents", "langchain": "langchain-core",
          "smolagents": "smolagents"}  # what caisson.adapters.* are for; nothing here needs them
DATE = (1980, 1, 1, 0, 0, 0)  # the same tree gives the same bytes


def version():
    text = (HERE / NAME / "__init__.py").read_text()
    return text.partition('__version__ = "')[2].partition('"')[0]


def metadata():
    return (f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {version()}\n"
            "Summary: A place where a coding agent works, behind walls\nLicense: Apache-2.0\n"
            "Requires-Python: >=3.9\n"
            + "".join(f"Provides-Extra: {name}\nRequires-Dist: {needs}; extra == '{name}'\n" for name, needs in EXTRAS.items())
            + "Description-Content-Type: text/markdown\n\n" + (HERE / "README.md").read_text())


def sources():
    return sorted(p for p in (HERE / NAME).rglob("*") if p.suffix in (".py", ".typed"))


def write_wheel(folder, files):
    """`files`: name -> bytes. RECORD comes last, with the hash of all others."""
    info = f"{NAME}-{version()}.dist-info"
    files = {**files, f"{info}/METADATA": metadata().encode(), f"{info}/entry_points.txt": ENTRY_POINTS.encode(),
             f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: caisson\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    rows = []
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.append(f"{name},sha256={digest},{len(data)}\n")
    files[f"{info}/RECORD"] = "".join([*rows, f"{info}/RECORD,,\n"]).encode()
    name = f"{NAME}-{version()}-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(folder) / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, data in files.items():
            one = zipfile.ZipInfo(path, DATE)
            one.external_attr, one.compress_type = 0o644 << 16, zipfile.ZIP_DEFLATED
            wheel.writestr(one, data)
    return name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return write_wheel(wheel_directory, {str(p.relative_to(HERE)): p.read_bytes() for p in sources()})


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    return write_wheel(wheel_directory, {f"{NAME}.pth": f"{HERE}\n".encode()})


def build_sdist(sdist_directory, config_settings=None):
    base = f"{NAME}-{version()}"
    with tarfile.open(pathlib.Path(sdist_directory) / f"{base}.tar.gz", "w:gz", format=tarfile.PAX_FORMAT) as out:
        for path in [*sources(), *(HERE / n for n in ("pyproject.toml", "backend.py", "generate", "README.md"))]:
            out.add(path, f"{base}/{path.relative_to(HERE)}")
        text = metadata().encode()
        entry = tarfile.TarInfo(f"{base}/PKG-INFO")
        entry.size = len(text)
        out.addfile(entry, io.BytesIO(text))
    return f"{base}.tar.gz"
