"""Features that change in Lightning, which owns the loop: the module of the guide."""

import re
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.utils.data import TensorDataset

import dmsgd
from dmsgd.torch import embed

N, K, STEPS = 120, 20, 6
#: Steps after which a run is resumed: in the first, second and third epoch.
RESUMED = (2, STEPS + 2, 2 * STEPS + 2)
PAGE = Path(__file__).parent.parent / "docs" / "frameworks.md"
#: The epochs before which most units are dead, and the kernels drawn from.
CASES = {
    "units live": ((), ("Linear", "Linear", "Linear")),
    "units die": ((1,), ("Linear", "RBF", "Linear")),
    "units die for good": ((1, 2), ("Linear", "RBF", "RBF")),
}


class Body(torch.nn.Module):
    """A layer of 30 units, of which only 5 do not give 0 once `dead` epochs begin."""

    def __init__(self, dead):
        super().__init__()
        torch.manual_seed(0)
        self.layer, self.dead = torch.nn.Linear(40, 30), dead
        self.register_buffer("steps", torch.tensor(0))

    def forward(self, inputs):
        self.steps += self.training
        alive = 5 if int(self.steps) // STEPS in self.dead else 30
        return torch.tanh(self.layer(inputs)) * (torch.arange(30) < alive)


def guide(lightning, dataset):
    """Return the module of the guide, and the list of the features that it makes."""
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.S | re.M)
    (code,) = (each for each in blocks if "lightning.LightningModule" in each)
    assert "lightning.Trainer(reload_dataloaders_every_n_epochs=1)" in code
    found = []

    def features(model, data):
        found.append(embed(model, data))
        return found[-1]

    ours = SimpleNamespace(embed=features, loader=dmsgd.torch.loader)
    package = SimpleNamespace(diversify=dmsgd.diversify, torch=ours)
    names = {"dmsgd": package, "torch": torch, "lightning": lightning, "dataset": dataset}
    exec(compile(code, str(PAGE), "exec"), names)
    return names["Learning"], found


@pytest.mark.long
@pytest.mark.parametrize(("dead", "kernels"), CASES.values(), ids=CASES)
def test_lightning(tmp_path, dead, kernels):
    lightning = pytest.importorskip("lightning")
    rng = np.random.default_rng(0)
    X = torch.from_numpy(rng.normal(size=(N, 40)).astype(np.float32))
    dataset = TensorDataset(X, torch.from_numpy(rng.integers(0, 3, N)), torch.arange(N))

    def run(path=None):
        learning, found = guide(lightning, dataset)

        class Model(learning):
            def __init__(self):
                super().__init__()
                self.body, self.head, self.seen = Body(dead), torch.nn.Linear(30, 3), []

            def training_step(self, batch, _):
                inputs, targets, items = batch
                self.seen.append(items.tolist())
                return torch.nn.functional.cross_entropy(self.head(self.body(inputs)), targets)

            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), lr=0.1)

        model, checkpoint = Model(), lightning.pytorch.callbacks.ModelCheckpoint
        ends = checkpoint(tmp_path, "end-{epoch}", save_top_k=-1)
        saved = checkpoint(tmp_path, "{step}", every_n_train_steps=1, save_top_k=-1)
        trainer = lightning.Trainer(
            max_epochs=3, reload_dataloaders_every_n_epochs=1, callbacks=[saved, ends],
            logger=False, enable_progress_bar=False, enable_model_summary=False, accelerator="cpu",
            default_root_dir=tmp_path,
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Lightning's
            trainer.fit(model, ckpt_path=path)
        return model, found

    model, found = run()
    designs = [dmsgd.diversify(features, k=K) for features in found]
    assert [design.kernel.partition("(")[0] for design in designs] == list(kernels)
    draws = [design.sample(STEPS, 0, start=e * STEPS) for e, design in enumerate(designs)]
    assert model.seen == np.concatenate(draws).tolist()
    steps = [(step, f"step={step}") for step in (*RESUMED, STEPS)]
    for step, name in (*steps, (STEPS, "end-epoch=0"), (2 * STEPS, "end-epoch=1")):
        resumed, again = run(tmp_path / f"{name}.ckpt")
        assert resumed.seen == model.seen[step:]
        assert torch.equal(resumed.head.weight, model.head.weight)
        assert len(again) == 2 - (step - 1) // STEPS
