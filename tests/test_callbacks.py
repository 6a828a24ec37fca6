"""Features that change in frameworks that own the loop: the callbacks of the guide."""

import importlib
import re
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.utils.data import TensorDataset

import dmsgd
from dmsgd.torch import DiverseSampler, embed

N, K, STEPS = 48, 8, 6
#: Steps after which a run is resumed: in the first, second and third epoch.
RESUMED = (2, STEPS + 2, 2 * STEPS + 2)
PAGE = Path(__file__).parent.parent / "docs" / "frameworks.md"
#: The kernel asked for, the epochs after which most units are dead, and the kernels drawn from.
CASES = {
    "units live": ("linear", (), ("Linear", "Linear", "Linear")),
    "units die, kernel chosen": ("auto", (1,), ("Linear", "RBF", "Linear")),
    "units die, kernel named": ("linear", (2,), ("Linear", "Linear", "Linear")),
    "units die and live, kernel named": ("linear", (1,), ("Linear", "Linear", "Linear")),
    "units die for good, kernel named": ("linear", (1, 2), ("Linear", "Linear", "Linear")),
}
each_case = pytest.mark.parametrize(("kernel", "dead", "kernels"), CASES.values(), ids=CASES)


def problem(kernel="linear"):
    rng = np.random.default_rng(0)
    X = torch.from_numpy(rng.normal(size=(N, 10)).astype(np.float32))
    y = torch.from_numpy(rng.integers(0, 3, N))
    return X, y, dmsgd.diversify(X, k=K, kernel=kernel)


class Body(torch.nn.Module):
    """A layer of 12 units, of which only 5 do not give 0 once `dead` epochs are over."""

    def __init__(self, dead):
        super().__init__()
        torch.manual_seed(0)
        self.layer, self.dead = torch.nn.Linear(10, 12), dead
        self.register_buffer("steps", torch.tensor(0))

    def forward(self, inputs):
        self.steps += self.training
        alive = 5 if int(self.steps) // STEPS in self.dead else 12
        return torch.tanh(self.layer(inputs)) * (torch.arange(12) < alive)


class Seen(torch.utils.data.Dataset):
    """Items with their numbers, as the Trainer wants them."""

    def __init__(self, X, y):
        self.X, self.y = X, y

    def __len__(self):
        return N

    def __getitem__(self, item):
        return {"inputs": self.X[item], "labels": self.y[item], "item": torch.tensor(item)}


def by_hand(X, features, kernel, kernels):
    """The draws of three epochs: of the features that were seen, or where those allow no batches
    of K items, of the ones before."""
    designs = [dmsgd.diversify(X, k=K, kernel=kernel)]
    for F in features:
        try:
            designs.append(dmsgd.diversify(F, k=K, kernel=kernel))
        except dmsgd.RankError:
            designs.append(designs[-1])
    assert [design.kernel.partition("(")[0] for design in designs] == list(kernels)
    draws = [design.sample(STEPS, 0, start=e * STEPS) for e, design in enumerate(designs)]
    return np.concatenate(draws).tolist()


def callback(framework, sampler, model, dataset):
    """The guide's callback for a framework, and the list of the features that it makes."""
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.S | re.M)
    (code,) = (each for each in blocks if f"class NewFeatures({framework}." in each)
    found = []

    def features(*arguments):
        found.append(embed(*arguments))
        return found[-1]

    names = {
        "dmsgd": SimpleNamespace(torch=SimpleNamespace(embed=features)), "np": np, "torch": torch,
        framework: importlib.import_module(framework),
        "sampler": sampler, "model": model, "dataset": dataset,
    }  # fmt: skip
    exec(compile(code, str(PAGE), "exec"), names)
    return names["NewFeatures"](), found


def told(run):
    """Return what `run` returns, and how often it warned of features that it does not use."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = run()
    messages = [str(each.message) for each in caught if each.category is dmsgd.KernelWarning]
    assert all("before its ReLU" in message for message in messages)
    return *found, len(messages)


@pytest.mark.long
@each_case
def test_lightning(tmp_path, kernel, dead, kernels):
    lightning = pytest.importorskip("lightning.pytorch")
    X, y, design = problem(kernel)
    data = TensorDataset(X, y, torch.arange(N))

    class Model(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.body, self.head, self.seen = Body(dead), torch.nn.Linear(12, 3), []

        def training_step(self, batch, _):
            inputs, targets, items = batch
            self.seen.append(items.tolist())
            return torch.nn.functional.cross_entropy(self.head(self.body(inputs)), targets)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    def run(path=None):
        torch.manual_seed(1)
        model, loader = Model(), dmsgd.torch.loader(data, design)
        update, found = callback("lightning", loader.sampler, model, TensorDataset(X))
        ends = lightning.callbacks.ModelCheckpoint(tmp_path, "end-{epoch}", save_top_k=-1)
        saved = lightning.callbacks.ModelCheckpoint(
            tmp_path, "{step}", every_n_train_steps=1, save_top_k=-1
        )
        trainer = lightning.Trainer(
            max_epochs=3, callbacks=[update, saved, ends], logger=False,
            enable_progress_bar=False, enable_model_summary=False, accelerator="cpu",
            default_root_dir=tmp_path,
        )  # fmt: skip
        trainer.fit(model, loader, ckpt_path=path)
        return model, found

    model, found, warned = told(run)
    assert (len(found), warned) == (3, kernel == "linear" and len(dead) > 0)  # one at the very end
    assert model.seen == by_hand(X, found[:2], kernel, kernels)
    for step, name in (*((step, f"step={step}") for step in RESUMED), (STEPS, "end-epoch=0")):
        resumed, again, _ = told(lambda: run(tmp_path / f"{name}.ckpt"))  # noqa: B023
        assert resumed.seen == model.seen[step:]
        assert torch.equal(resumed.head.weight, model.head.weight)
        assert len(again) == 3 - step // STEPS


@pytest.mark.long
@each_case
def test_the_hugging_face_trainer(tmp_path, kernel, dead, kernels):
    transformers = pytest.importorskip("transformers")
    X, y, design = problem(kernel)

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.head, self.seen = Body(dead), torch.nn.Linear(12, 3), []

        def forward(self, inputs, labels, item):
            self.seen.append(item.tolist())
            return {"loss": torch.nn.functional.cross_entropy(self.head(self.body(inputs)), labels)}

    def run(resume=None):
        torch.manual_seed(1)
        model, sampler = Model(), DiverseSampler(design)
        update, found = callback("transformers", sampler, model.body, TensorDataset(X))

        class Diverse(transformers.Trainer):
            def get_train_dataloader(self):
                batches = dmsgd.torch.loader(
                    self.train_dataset, sampler, collate_fn=self.data_collator
                )
                return self.accelerator.prepare(batches)

        arguments = transformers.TrainingArguments(
            str(tmp_path / "run"), per_device_train_batch_size=K, num_train_epochs=3, save_steps=1,
            learning_rate=0.1, optim="sgd", use_cpu=True, report_to=[], disable_tqdm=True,
            lr_scheduler_type="constant", max_grad_norm=0,
        )  # fmt: skip
        trainer = Diverse(model, arguments, train_dataset=Seen(X, y), callbacks=[update])
        trainer.train(resume_from_checkpoint=resume)
        return model, found

    model, found, warned = told(run)
    assert (len(found), warned) == (2, kernel == "linear" and len(dead) > 0)
    assert model.seen == by_hand(X, found, kernel, kernels)
    checkpoints = tmp_path / "run"
    for step in (*RESUMED, STEPS):
        resumed, again, _ = told(lambda: run(str(checkpoints / f"checkpoint-{step}")))  # noqa: B023
        assert resumed.seen == model.seen[step:]
        assert torch.equal(resumed.head.weight, model.head.weight)
        assert len(again) == 2 - (step - 1) // STEPS
