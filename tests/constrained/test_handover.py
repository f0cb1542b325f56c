"""The example of the handover: energy across a grasp and a release."""

import runpy
from pathlib import Path

import numpy as np

EXAMPLE = Path(__file__).parents[2] / "examples" / "handover.py"


def test_handover(tmp_path, capsys):
    example = runpy.run_path(str(EXAMPLE))
    picture = tmp_path / "handover.svg"
    records, events = example["main"](str(picture), seconds=0.65)
    assert picture.read_text().count("<path") > 5
    assert "detach left grasp" in capsys.readouterr().out
    assert [name for _, name, _, _ in events] == ["attach right grasp", "detach left grasp"]
    for _, name, before, after in events:
        lost = before[0] - after[0]
        assert lost > -1e-9 if name.startswith("attach") else lost == 0.0
    energy, work = (np.array([r[i] for r in records]) for i in (1, 2))
    balance = energy - energy[0] - work
    assert np.abs(balance).max() < 0.02  # J, of 205 J: steps of 1 ms
    assert max(r[5] for r in records) < 1e-6
    weight = [np.linalg.norm(r[4]["left grasp"][3:]) for r in records if r[0] < 0.29]
    assert abs(weight[-1] - 1.5 * 9.81) < 0.1
