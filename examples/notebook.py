"""A look before training, cell by cell: VS Code, Jupyter (with jupytext) and Spyder run the cells.

The page at the end is one file to keep.

DDP:     nothing here is distributed; look once, on one process.
Resume:  nothing to resume.
Workers: none.
"""

# %% Data: ten classes, 120 items down to 5
import tempfile
from pathlib import Path
from typing import Any

import torch
from torch.func import functional_call, grad, vmap

import dmsgd
from data import long_tailed_digits
from dmsgd import diagnostics

X, y, *_ = long_tailed_digits()


def show(thing: Any) -> None:
    """Display an object in a notebook, print it elsewhere."""
    if "get_ipython" in globals():  # only notebooks have it
        from IPython.display import display
    else:
        display = print
    display(thing)


# %% What should I use?
found = diagnostics.inspect(X, k=20, labels=y)
print(found)
show(found.advice.design(X, y))

# %% A k-DPP: class shares, and how many items come
show(design := dmsgd.diversify(X, 20, y, w=0.7))
show({c: f"{share:.1%}" for c, share in diagnostics.class_shares(design, y).items()})
show(f"items seen in 20 steps: {1 - ((1 - design.inclusion()) ** 20).mean():.0%}")

# %% The exact variance of the gradient, from every item's own
torch.manual_seed(0)
inputs, targets = torch.tensor(X), torch.tensor(y)
model, loss = torch.nn.Linear(64, 10), torch.nn.functional.cross_entropy
single = grad(lambda w, x, y: loss(functional_call(model, w, (x[None],)), y[None]))
parts = vmap(single, in_dims=(None, 0, 0))(model.state_dict(), inputs, targets)
gradients = torch.cat([each.flatten(1) for each in parts.values()], dim=1)
show(diagnostics.gradient_variance(design, gradients))

# %% A schedule, and one page about all of it
show(dmsgd.presample(design, steps=100))
options = dmsgd.designs.DesignOptions(w=0.7)
found = diagnostics.inspect(X, 20, y, options, gradients=gradients)
page = Path(tempfile.mkdtemp()) / "report.html"
page.write_text(found.html("Long-tailed digits", images=X.reshape(-1, 8, 8)), encoding="utf-8")
show(f"open {page}")
