# SPDX-License-Identifier: Apache-2.0
"""Which rule says what of which recording: one table of all rules and all recordings.

EPOCHMETER_UPDATE_GOLDEN=1 writes the table anew; what changed shows in the repository's diff.
"""
import concurrent.futures
import json
import os

import pytest

from conftest import ROOT, SHARED, Tool

TABLE = ROOT / "tests" / "golden" / "rules_by_recording.json"


def recordings():
    folder = SHARED / "recordings"
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there: no recordings to judge")
    return sorted(path for path in folder.iterdir() if (path / "truth.json").exists())


def where(finding):
    """A finding in a word or a few: "warning", "critical rank 1", "info gpu 0"."""
    words = [finding["severity"]]
    for key in ("rank", "gpu"):
        if finding.get(key) is not None:
            words.append(f"{key} {finding[key]}")
    return " ".join(words)


def judged(recording, folder):
    folder.mkdir()
    tool = Tool(folder)
    done = tool.call("import", "recording", recording, "-o", tool.run_file)
    assert done.returncode == 0, done.stderr.decode()
    rules = {}
    for finding in tool.report()["findings"]:
        rules.setdefault(finding["rule"], []).append(where(finding))
    return {rule: ", ".join(sorted(words)) for rule, words in rules.items()}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Rule -> recording -> what it says; "" where it found nothing wrong."""
    folder = tmp_path_factory.mktemp("rules")
    found = recordings()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        by_recording = dict(zip((path.name for path in found),
                                pool.map(lambda path: judged(path, folder / path.name), found)))
    done = Tool(folder).call("rules", "--json")
    assert done.returncode == 0, done.stderr.decode()
    listed = json.loads(done.stdout)["data"]["rules"]
    return {rule["id"]: {name: rules.get(rule["id"], "") for name, rules in by_recording.items()}
            for rule in listed}


def test_rules_say_of_the_recordings_what_the_table_says(table):
    if os.environ.get("EPOCHMETER_UPDATE_GOLDEN") == "1":
        TABLE.write_text(json.dumps(table, indent=1, sort_keys=True) + "\n")
    expected = json.loads(TABLE.read_text())
    differences = [f"{rule} of {name}: {expected.get(rule, {}).get(name)!r} -> {says!r}"
                   for rule, row in table.items() for name, says in row.items()
                   if expected.get(rule, {}).get(name) != says]
    differences += [f"{rule} is no rule any more" for rule in sorted(set(expected) - set(table))]
    assert not differences, "\n".join(differences)


@pytest.mark.parametrize("name", ["healthy", "ddp_healthy"])
def test_healthy_recordings_have_no_warning(table, name):
    if not (SHARED / "recordings" / name).is_dir():
        pytest.skip(f"no recording {name}")
    raised = {rule: row[name] for rule, row in table.items()
              if "warning" in row[name] or "critical" in row[name]}
    assert raised == {}


def test_each_rule_judges_or_says_why_not(table):
    """A rule that is not applicable says only that."""
    for rule, row in table.items():
        for name, says in row.items():
            assert "not_applicable" not in says or says == "not_applicable", (rule, name, says)
