"""An mkdocs hook that puts every notebook of docs/notebooks on the site as a page, with the outputs saved in it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Beside each `name.ipynb`, which can be downloaded, comes a page `name.md`."""
    for path in sorted(Path(config.docs_dir, "notebooks").glob("*.ipynb")):
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=as_markdown(path)))
    return files


def as_markdown(path: Path) -> str:
    """A notebook as a page.

    Its links to other notebooks become links to their pages.
    """
    parts = []
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "markdown":
            parts.append(re.sub(r"\]\(([\w-]+)\.ipynb\)", r"](\1.md)", cell.source))
        else:
            parts.append(f"```python\n{cell.source}\n```")
            parts += [_output(output) for output in cell.outputs]
    parts.append(f"[The notebook itself]({path.name}).")
    return "\n\n".join(part for part in parts if part) + "\n"


def _output(output: Any) -> str:
    if output.output_type == "stream":
        return f"```text\n{output.text.rstrip()}\n```"
    if "image/png" in output.get("data", {}):
        return f"![a figure that the program drew](data:image/png;base64,{output.data['image/png'].strip()})"
    return f"```text\n{output.data['text/plain']}\n```"
