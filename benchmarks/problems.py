"""The kernels that the benchmarks draw from: generated, and the paper's where the data is."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np

import dmsgd

sys.path.append(str(Path(__file__).parent.parent))  # for experiments, which are not installed

from experiments import datasets


def gaussian(n, d, seed=0):
    """Features with a spectrum that decays over two decades."""
    X = np.random.default_rng(seed).normal(size=(n, d))
    X *= np.logspace(0, -1, d)
    return X


def data_folder():
    """The folder of real data sets, or None."""
    folder = os.environ.get("DMSGD_DATA")
    return Path(folder) if folder and Path(folder).is_dir() else None


def r8():
    """The paper's R8 kernel: tf-idf to the power 0.1, 5485 documents, rank 5416."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    documents = datasets.r8().train
    return dmsgd.features.anneal(
        TfidfVectorizer(token_pattern=r"\S+").fit_transform(documents), 0.1
    )


def mnist_half():
    """Half of MNIST with labels, [(1-w)X, wH] with w = 0.5: 30,000 images, 794 columns."""
    images = datasets.mnist()
    X = images.x_train[:30_000].reshape(30_000, -1) / 255.0
    return dmsgd.features.concat(X, images.y_train[:30_000], 0.5)


def flowers(columns=None):
    """Oxford-102 as the paper trains on it: unit rows, all or the first principal directions."""
    X, y = datasets.flowers().part("test")
    X = dmsgd.features.normalize(X)
    if columns is not None:
        centred = X - X.mean(axis=0)
        X = centred @ np.linalg.eigh(centred.T @ centred)[1][:, -columns:]
    return X, y
