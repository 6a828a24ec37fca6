"""What the build adds to the metadata: where the project lives, and a README that reads there.

`home` in pyproject.toml (tool.hatch.metadata.hooks.custom) is the one place that names a public
address, such as "https://HOST/OWNER/dmsgd". With it, pictures and links of the README are absolute
in the long description. While it is empty, links become plain text there and pictures are left out:
an address that does not exist helps nobody.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

#: A Markdown picture or link (its !, text and address) to a file of the repository.
TO_A_FILE = re.compile(r"(!?)\[([^]]*)\]\((?!https?:|#)([^)\s]+)\)")


class Home(MetadataHookInterface):
    """Sets what pyproject.toml calls dynamic."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Fill in `readme` and `urls`."""
        home, version = self.config["home"].rstrip("/"), metadata["version"]
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        readme = described(text, home, "main" if "dev" in version else f"v{version}")
        metadata["readme"] = {"content-type": "text/markdown", "text": readme}
        metadata["urls"] = urls(home)


def described(text: str, home: str, tag: str) -> str:
    """Return the README as it stands on a page that is not the repository's."""

    def away(found: re.Match[str]) -> str:
        picture, words, path = found.groups()
        if not home:
            return "" if picture else words
        return f"{picture}[{words}]({home}/{'raw' if picture else 'blob'}/{tag}/{path})"

    return TO_A_FILE.sub(away, text)


def urls(home: str) -> dict[str, str]:
    """Return the addresses that the page of a package index shows."""
    if not home:
        return {}
    return {
        "Source": home,
        "Documentation": f"{home}/blob/main/docs/index.md",
        "Changelog": f"{home}/blob/main/CHANGELOG.md",
        "Issues": f"{home}/issues",
    }
