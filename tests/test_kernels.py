from functools import partial

import numpy as np
import pytest
from scipy import sparse

import dmsgd
from contracts import balanced_strata


def test_median_scale_is_the_median_distance():
    points = np.array([[0.0], [1.0], [3.0]])
    assert dmsgd.kernels.RBF(points).scale == pytest.approx(2.0)
    np.testing.assert_allclose(
        dmsgd.kernels.RBF(points).block([0], [1, 2]), np.exp([[-1 / 8, -9 / 8]]), rtol=1e-12
    )


def test_kernels_agree_on_diagonals_and_blocks():
    rng = np.random.default_rng(0)
    B = rng.normal(size=(6, 3))
    for kernel in (
        dmsgd.kernels.Linear(B),
        dmsgd.kernels.Linear(sparse.csr_array(B)),
        dmsgd.kernels.RBF(B),
        dmsgd.kernels.RBF(sparse.csr_array(B), 0.7),
        dmsgd.kernels.Precomputed(B @ B.T),
        balanced_strata([0, 1, 0, 1, 2, 2]),
        dmsgd.kernels.Linear(sparse.eye_array(6)),
    ):
        L = kernel.block(np.arange(6), np.arange(6))
        np.testing.assert_allclose(kernel.diag(), L.diagonal(), atol=1e-12)
        np.testing.assert_allclose(kernel.block([4, 1], [0, 1, 5]), L[np.ix_([4, 1], [0, 1, 5])])
        np.testing.assert_allclose(L, L.T)


SOME = {
    "linear": lambda B: dmsgd.kernels.Linear(B),
    "rbf": lambda B: dmsgd.kernels.RBF(B),
    "sparse rbf": lambda B: dmsgd.kernels.RBF(sparse.csr_array(B)),
    "matrix": lambda B: dmsgd.kernels.Precomputed(B @ B.T),
    "part": lambda B: dmsgd.kernels.Precomputed(B @ B.T).subset([0, 1, 2]),
}


@pytest.mark.parametrize("name", SOME)
def test_a_kernel_has_no_columns_for_no_items_and_no_part_of_none(name):
    kernel = SOME[name](np.random.default_rng(0).normal(size=(6, 3)))
    assert kernel.columns([]).shape == (kernel.n, 0)
    assert kernel.block([], [1]).shape == (0, 1)
    with pytest.raises(ValueError, match="items"):
        kernel.subset([])
    with pytest.raises(ValueError, match="J must lie"):
        kernel.columns([kernel.n])


def test_a_part_without_similarity_is_refused():
    with pytest.raises(ValueError, match="zero"):
        dmsgd.kernels.Precomputed(np.diag([1.0, 0.0, 0.0])).subset([1, 2])


def test_a_part_is_called_by_what_it_is():
    part = dmsgd.kernels.Precomputed(np.eye(3)).subset([0, 2])
    assert repr(part) == "2 items of Precomputed(3 items)"


@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1e200, 1e308])
def test_scales_whose_squares_are_no_numbers_are_refused(scale):
    with pytest.raises(ValueError, match=r"scale must lie between 1e-153 and 9e\+153"):
        dmsgd.kernels.RBF(np.eye(3), scale)
    with pytest.raises(ValueError, match="scale must lie between"):
        dmsgd.diversify(np.eye(3), 2, kernel="rbf", scale=scale)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_distances_at_the_end_of_the_range_are_right_or_refused(kind):
    """Rows that are 1e158 scales apart have similarity 0, and equal ones 1."""
    X = np.array([[1e150, 0.0], [0.0, 2e150], [0.0, 2e150]])
    L = dmsgd.kernels.RBF(kind(X), 1e-8).block(range(3), range(3))
    assert L.tolist() == [[1, 0, 0], [0, 1, 1], [0, 1, 1]]
    assert dmsgd.KDPP(dmsgd.kernels.RBF(kind(X), 1e-8), 2).inclusion()[0] == pytest.approx(1)
    far = kind([[9e153, 0.0], [-9e153, 0.0], [0.0, 1.0]])  # squared distances are above 1e308
    for call in (dmsgd.kernels.RBF, partial(dmsgd.diversify, k=2), partial(dmsgd.select, k=2)):
        with pytest.raises(ValueError, match="so large that their squares overflow; rescale"):
            call(far)


ROWS = np.random.default_rng(3).normal(size=(7, 4))
GRAPH = (np.add.outer(np.arange(7), np.arange(7)) % 3 == 0) * 1.0


@pytest.mark.parametrize(
    ("X", "found"),
    [
        (ROWS @ ROWS.T, True),
        (np.exp(-((ROWS[:, None] - ROWS) ** 2).sum(axis=2)), True),
        (sparse.csr_array(ROWS @ ROWS.T), True),
        ((ROWS @ ROWS.T) * (1 + 1e-15 * np.triu(np.ones((7, 7)))), True),  # rounding of each entry
        (ROWS, False),
        (ROWS[:4] @ ROWS[:4].T @ np.diag([1, 2, 3, 4]), False),  # not symmetric
        (np.abs(ROWS[:, :1] - ROWS[:, :1].T), False),  # distances
        (GRAPH * (1 - np.eye(7)), False),  # an adjacency matrix
        (np.maximum(GRAPH, np.eye(7)), False),  # of nodes with loops
        (np.diag(np.arange(1.0, 6.0)), False),  # one direction for each item
        (ROWS[:2] @ ROWS[:2].T, False),  # two items
    ],
)
def test_kernel_matrices_are_told_from_features(X, found):
    from dmsgd.features import as_features
    from dmsgd.kernels.precomputed import looks_like_kernel_matrix

    assert looks_like_kernel_matrix(as_features(X)) is found


def test_features_in_blocks_are_no_kernel_matrix():
    from dmsgd.features.blocks import in_blocks
    from dmsgd.kernels.precomputed import looks_like_kernel_matrix

    assert not looks_like_kernel_matrix(in_blocks(ROWS @ ROWS.T))


@pytest.mark.parametrize(
    "make", [dmsgd.kernels.Linear, dmsgd.kernels.RBF, lambda X: dmsgd.KDPP(X @ X.T, 2).spectrum]
)
def test_diversify_sends_kernels_and_spectra_to_kdpp(make):
    with pytest.raises(TypeError, match="KDPP"):
        dmsgd.diversify(make(ROWS), 2)


@pytest.mark.parametrize(
    "wrong",
    [
        dmsgd.Uniform(5, 2),
        dmsgd.presample(dmsgd.Uniform(5, 2), 3, seed=0),
        dmsgd.DPP(np.eye(3)),
        dmsgd.KDPP,
        None,
        "L.npy",
        1.0,
        {1, 2},
    ],
    ids=str,
)
def test_what_is_no_kernel_matrix_is_named(wrong):
    for make in (lambda L: dmsgd.KDPP(L, 2), dmsgd.DPP):
        with pytest.raises(TypeError, match="Kernel"):
            make(wrong)


def test_features_given_as_a_kernel_matrix_are_sent_to_diversify():
    with pytest.raises(ValueError, match="diversify"):
        dmsgd.KDPP(ROWS, 2)


def test_a_kernel_matrix_of_any_kind_is_the_same():
    pandas, torch = pytest.importorskip("pandas"), pytest.importorskip("torch")
    L = ROWS @ ROWS.T
    for kind in (np.asarray, np.ndarray.tolist, sparse.csr_array, pandas.DataFrame, torch.tensor):
        np.testing.assert_array_equal(
            dmsgd.KDPP(kind(L), 2).inclusion(), dmsgd.KDPP(L, 2).inclusion()
        )
