"""Files as people have them, made from scikit-learn's data: `python files.py FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_blobs

#: Numbers of patients, as a hospital gives them: large, and no measurements.
FIRST_ID = 10_000_000


def write(folder: Path) -> None:
    """Write all files into the folder."""
    iris = load_iris(as_frame=True).frame.rename(columns={"target": "species"})
    iris["species"] = np.array(["setosa", "versicolor", "virginica"])[iris["species"]]
    iris.index.name = "flower"  # written as a column of row numbers
    iris.to_csv(folder / "iris.csv")
    iris.to_csv(folder / "iris.tsv", sep="\t", index=False)
    iris.to_parquet(folder / "iris.parquet")  # the index is a column of the file

    wine = load_wine(as_frame=True).frame.rename(columns={"target": "cultivar"})
    wine.to_csv(folder / "wine.csv", index=False)  # proline in hundreds, hue below 2

    cancer = load_breast_cancer(as_frame=True).frame
    cancer.insert(0, "patient_id", FIRST_ID + 37 * np.arange(len(cancer)))
    cancer.to_csv(folder / "cancer.csv", index=False)

    digits = load_digits()
    np.save(folder / "images.npy", digits.images)  # (n, 8, 8)
    np.save(folder / "digits.npy", digits.data.astype(np.float32))
    np.save(folder / "column.npy", digits.target[:, None])  # (n, 1)
    np.savetxt(folder / "labels.txt", digits.target, fmt="%d")
    embeddings = pd.DataFrame(
        {"text": [f"digit {d}" for d in digits.target], "label": digits.target}
    )
    embeddings["embedding"] = [list(row) for row in digits.data.astype(np.float32)]
    embeddings.to_parquet(folder / "embeddings.parquet", index=False)

    X, y = make_blobs([300, 60, 15, 5], n_features=6, random_state=0)
    np.savez(folder / "blobs.npz", X=X, y=y)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
