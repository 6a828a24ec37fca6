"""The classifier of topic proportions."""

from __future__ import annotations

from typing import Any

import numpy as np

from dmsgd.inputs.arrays import FloatArray
from dmsgd.paper.r8.result import Config


def features(config: Config, theta: FloatArray) -> FloatArray:
    """Return what the SVM sees of topic proportions."""
    forms = {"plain": np.positive, "root": np.sqrt}
    if config.form not in forms:
        raise ValueError(f"unknown form {config.form!r}; use 'plain' or 'root'")
    return np.asarray(forms[config.form](theta))


def classifier(config: Config) -> Any:
    """Return the linear SVM: hinge loss, one class against one other, classes not weighted."""
    from sklearn.svm import SVC

    return SVC(C=config.penalty, kernel="linear")
