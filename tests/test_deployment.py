"""What is shipped to run the service with: the systemd unit and the containers."""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
UNIT = ROOT / "deploy" / "sparingly.service"


def test_the_unit_gives_the_service_as_little_as_it_needs() -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None, comment_prefixes="#")
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(UNIT)
    service = unit["Service"]
    assert (service["CapabilityBoundingSet"], service["UMask"], service["RestrictNamespaces"]) == ("", "0077", "yes")
    assert service["DynamicUser"] == "yes"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_understands_the_unit_and_finds_it_tight(tmp_path: Path) -> None:
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("/opt/sparingly/bin/sparingly", shutil.which("true") or "/bin/true"))
    verified = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, timeout=60)
    assert (verified.returncode, verified.stderr) == (0, "")
    command = ["systemd-analyze", "security", "--offline=yes", unit]
    judged = subprocess.run(command, capture_output=True, text=True, timeout=60).stdout
    exposure = re.search(r"Overall exposure level for sparingly.service: ([\d.]+)", judged)
    assert exposure is not None
    assert float(exposure[1]) < 2.0


def test_only_the_proxy_has_a_port_of_the_host_so_that_the_service_scales() -> None:
    text = (ROOT / "compose.yaml").read_text()
    parts = dict(re.findall(r"^  (\w+):\n((?:(?:    .*)?\n)+)", text, re.MULTILINE))
    assert "ports:" not in parts["service"]
    assert re.search(r'ports:\n +- "127\.0\.0\.1:\$\{PORT:-8000\}:80"', parts["proxy"])
    network = re.search(r"subnet: (\S+)", text)
    assert network is not None
    assert f'"--trusted-proxy", "{network[1]}"' in parts["service"]
    assert "service:8000" in (ROOT / "deploy" / "nginx.conf").read_text()
