"""What a stranger types in the first hour, and what has to come back.

Names of files are those of `files.py`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

#: Before any extra is installed; without any; and with pyarrow.
BARE, ANY, PARQUET = "bare", "any", "parquet"


@dataclass(frozen=True)
class Step:
    """A command of `dmsgd`, or code for Python if it has lines, and what has to come back.

    code:     the exit code.
    expected: regular expressions, each found in what is printed, in this order.
    never:    regular expressions that must not be found.
    where:    the environment: without extras, any, or with pyarrow.
    """

    typed: str
    expected: tuple[str, ...]
    code: int = 0
    never: tuple[str, ...] = ("Traceback", "Warning:")
    where: str = ANY

    @property
    def is_python(self) -> bool:
        """Whether this is code for Python."""
        return "\n" in self.typed

    def wrong(self, code: int, printed: str) -> str:
        """Return what is wrong with an answer; empty if nothing is."""
        if code != self.code:
            return f"exit code {code} instead of {self.code}"
        rest = " ".join(printed.split())  # lines break where the terminal ends
        for pattern in self.never:
            if re.search(pattern, rest):
                return f"{pattern!r} was printed"
        for pattern in self.expected:
            found = re.search(pattern, rest)
            if found is None:
                return f"{pattern!r} was not printed (or not in this order)"
            rest = rest[found.end() :]
        return ""


UNIFORM = r"Use shuffled epochs: the classes are even"
EVEN_IRIS = r"3 classes of 50 to 50"

STEPS = (
    Step("--version", (r"dmsgd \d+\.\d+",)),
    Step("--help", ("Usage: dmsgd", "inspect", "sample", "select", "demo")),
    # Something is missing, or mistyped: one line that says what to do.
    Step("inspect nothing.csv -k 3", ("^error: there is no file nothing.csv$",), code=2),
    Step(
        "inspect iris.csv --labels specie -k 10",
        ("^error: .*has no column 'specie' for --labels; it has flower, .*species$",),
        code=2,
    ),
    Step(
        "inspect iris.csv --labels species -k 200",
        ("error: k=200 exceeds the number of items, 150; lower k to at most 150$",),
        code=2,
    ),
    Step(
        "inspect images.npy --labels column.npy -k 20",
        (r"^error: images.npy must have two dimensions .*\(1797, 8, 8\).*X.reshape",),
        code=2,
    ),
    # A named index is noticed, and the same data without it asks for nothing.
    Step(
        "inspect iris.csv --labels species -k 10",
        (
            "warning: .*'flower' counts upwards.*--drop flower",
            "150 items x 5",
            EVEN_IRIS,
            UNIFORM,
        ),
    ),
    Step(
        "inspect iris.csv --labels species --drop flower -k 10",
        ("150 items x 4", EVEN_IRIS, "setosa", UNIFORM, "batch_size=10, shuffle=True"),
        never=("Traceback", "warning:"),
    ),
    Step("inspect iris.tsv --labels species -k 10", ("150 items x 4", EVEN_IRIS, UNIFORM)),
    # Columns in different units, ids near ten million.
    Step(
        "inspect wine.csv --labels cultivar -k 10",
        ("178 items x 13", "columns in different units", "Use "),
    ),
    Step(
        "inspect wine.csv --labels cultivar --standardize -k 10",
        ("178 items x 13", "Use "),
        never=("Traceback", "different units"),
    ),
    Step(
        "inspect cancer.csv --labels target -k 16",
        ("'patient_id' counts upwards.*--drop patient_id", "569 items x 31", "Use "),
    ),
    Step(
        "inspect cancer.csv --labels target --drop patient_id --standardize -k 16",
        ("569 items x 30", "2 classes of 212 to 357", "Use "),
        never=("Traceback", "counts upwards"),
    ),
    # Labels in files: (n, 1), one a line, an array of an archive.
    Step(
        "inspect digits.npy --labels column.npy -k 20",
        ("1,797 items x 64", "10 classes of 174 to 183", UNIFORM),
    ),
    Step(
        "inspect digits.npy --labels labels.txt -k 20",
        ("1,797 items x 64", "10 classes of 174 to 183", UNIFORM),
    ),
    Step(
        "inspect blobs.npz:X --labels blobs.npz:y -k 5",
        (
            "380 items x 6",
            "4 classes of 5 to 300",
            "Use Stratified",
            r"Stratified\(y, k=5\)",
        ),
    ),
    Step(
        "inspect blobs.npz:X -k 20 --kernel linear",
        ("rank is too small", "Use shuffled epochs"),
    ),
    Step("inspect blobs.npz:X -k 20", ("no labels", "shuffle=True")),
    # Batches, a set, a page.
    Step(
        "sample iris.csv --labels species --drop flower --kernel linear -k 10 -n 5 -o flowers.csv",
        ("error: the features have 4 .*batches of 10 need 10.*--kernel rbf",),
        code=2,
    ),
    Step(
        "sample iris.csv --labels species --drop flower -k 10 -n 5 -o flowers.csv",
        ("rank 14.", "draws 5", "written flowers.csv: 5 x 10"),
    ),
    Step(
        "sample wine.csv --labels cultivar -w 0.5 --standardize -k 10 -n 1000 -o batches.npy",
        ("178 items x 13", "draws 1,000", "written batches.npy: 1,000 x 10", "classes 3"),
    ),
    Step(
        "sample wine.csv --labels cultivar -w 0.5 --standardize -k 10 -n 1000 -o batches.npy",
        ("batches.npy holds these 1,000 batches already: nothing is drawn",),
    ),
    Step(
        "sample wine.csv --labels cultivar -w 0.6 --standardize -k 10 -n 1000 -o batches.npy",
        ("error: .*batches.npy is another schedule: .*other features, labels, w", "--force"),
        code=2,
    ),
    Step(
        "select digits.npy --normalize -k 10 -o chosen.csv --page chosen.html",
        ("1,797 items x 64", "10 items", "written chosen.csv and chosen.html"),
    ),
    Step(
        "select iris.csv --drop flower -k 10",
        ("^error: .*'species' holds text.* --texts species, or --drop species",),
        code=2,
    ),
    Step(
        "inspect wine.csv --labels cultivar --standardize -k 10 --page wine.html",
        ("178 items x 13", "written wine.html"),
    ),
    Step(
        """
import numpy as np
import dmsgd

X, y = np.load("digits.npy"), np.load("column.npy")
design = dmsgd.diversify(X, k=20, labels=y, w=0.7)
batches = design.sample(100, seed=0)
print(batches.shape, all(len(set(batch)) == 20 for batch in batches.tolist()))
print(round(float(design.inclusion().sum()), 6), dmsgd.unbiased_weights(design).shape)
print(np.array_equal(dmsgd.Schedule.load("batches.npy").sample(5), np.load("batches.npy")[:5]))
""",
        (r"\(100, 20\) True", r"20\.0 \(1797,\)", "True"),
    ),
    Step(
        """
import numpy as np
import dmsgd

try:
    dmsgd.diversify(np.load("images.npy"), k=20)
except ValueError as error:
    print(error)
X = np.load("images.npy").reshape(1797, -1)
print(dmsgd.Partition(dmsgd.cells(X, k=20)))
""",
        (r"two dimensions .*\(1797, 8, 8\).*reshape", "Partition"),
    ),
    # What an extra is for is said before anything is done.
    Step(
        "inspect iris.parquet --labels species -k 10",
        (r'^error: .*needs pyarrow; pip install "dmsgd\[parquet\]"$',),
        code=2,
        where=BARE,
    ),
    Step(
        """
import numpy as np
import dmsgd

for what in (lambda: dmsgd.torch.loader, lambda: dmsgd.designs.clustered(np.eye(9), 3)):
    try:
        what()
    except ImportError as error:
        print(error)
""",
        (r"needs torch; pip install .dmsgd\[torch\]", r"needs scikit-learn; pip install .dmsgd\["),
        where=BARE,
    ),
    # The same tables as Parquet: the index is left out, lists of numbers are columns.
    Step(
        "inspect iris.parquet --labels species -k 10",
        ("150 items x 4", EVEN_IRIS, UNIFORM),
        never=("Traceback", "counts upwards"),
        where=PARQUET,
    ),
    Step(
        "inspect embeddings.parquet --labels label -k 20",
        ("1,797 items x 64", "10 classes of 174 to 183", UNIFORM),
        never=("Traceback", "warning"),
        where=PARQUET,
    ),
    Step(
        "select embeddings.parquet -k 20 -o chosen.jsonl",
        (
            "warning: .*left out: label; use --columns embedding,label",
            "1,797 items x 64",
            "20 items cover the pool as well as",
            "written chosen.jsonl",
        ),
        where=PARQUET,
    ),
)
