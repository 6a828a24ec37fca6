import struct
import tracemalloc

import numpy as np
import pytest
from scipy import sparse

import dmsgd
from dmsgd.features.blocks import in_blocks
from dmsgd.inputs.fingerprint import digest, fingerprint, fingerprint_rows, row_hashes
from dmsgd.samplers import reference

RNG = np.random.default_rng(0)
FIXED = np.arange(12.0).reshape(4, 3) / 7 - 0.5


def test_fingerprints_are_the_same_on_every_platform():
    assert fingerprint(FIXED) == (
        "8d4984b2d0ee86e4cdf7587b2052eedf9a0d3d1b622ae0984da7460944ce3947"
    )
    assert fingerprint(sparse.csr_array(np.where(FIXED > 0, FIXED, 0))) == (
        "8ba02297a0462bd676c2be329cc1235cac7e50106ac0af95f47ccc03249572db"
    )
    assert dmsgd.kernels.Linear(FIXED).fingerprint() == (
        "3c55c27f50fee6b8b0d82e6bf85ddf1bfe902243e385821eb24b29e86dc87456"
    )
    assert dmsgd.Uniform(10, 3).fingerprint() == (
        "363fed2cb0a91b1e6400597140c9e0330bdb96071b1c42682a36f77c5562f7a1"
    )
    assert dmsgd.Stratified(["a", "b", "a"], 2).fingerprint() == (
        "eeba83e750d4cd032f73e0a04b39cbd4bb2410c1d43f838a4c326c56c5c9d90e"
    )
    assert dmsgd.KDPP(dmsgd.kernels.Linear(FIXED), 2).fingerprint() == (
        "8d806ae5fc9ed1b9476003f5d0d6e729ac2a79f6289f4196197fb952bd2cf147"
    )
    assert dmsgd.diversify(FIXED, 2, kernel="rbf", scale=1.0, target="uniform").fingerprint() == (
        "09a44bc5fad78a6a739e3c031b049e52a3345f7db4f5a6ce5c307fb587d7ff0e"
    )


def test_fingerprints_do_not_depend_on_the_type_of_whole_numbers():
    """With NumPy 1 on Windows the one of a tuple is int32."""
    shape = tuple(map(np.int32, FIXED.shape))
    assert fingerprint_rows(shape, [row_hashes(FIXED)]) == fingerprint(FIXED)


def test_row_hashes_are_the_sum_they_say():
    X = RNG.normal(size=(5, 7))
    factors = [int(a) | 1 for a in np.random.Philox(key=0).random_raw(7)]
    expected = [
        sum(
            a * int.from_bytes(struct.pack(">d", x), "little")
            for a, x in zip(factors, row, strict=True)
        )
        % 2**64
        for row in X
    ]
    assert row_hashes(X).tolist() == expected


@pytest.mark.parametrize("density", [0.0, 0.1, 1.0])
def test_sparse_rows_have_the_hashes_of_the_array(density):
    X = sparse.csr_array(RNG.random((50, 30)) * (RNG.random((50, 30)) < density))
    np.testing.assert_array_equal(row_hashes(X), row_hashes(X.toarray()))
    assert fingerprint(X) == fingerprint(X.toarray())


CHANGES = {
    "the last bit of one value": lambda X: X.__setitem__((2, 1), np.nextafter(X[2, 1], 9)),
    "the sign of one value": lambda X: X.__setitem__((3, 0), -X[3, 0]),
    "two signs in a row": lambda X: X.__setitem__((3, [0, 2]), -X[3, [0, 2]]),
    "two rows swapped": lambda X: X.__setitem__([0, 1], X[[1, 0]]),
    "two values of a row swapped": lambda X: X.__setitem__((1, [0, 1]), X[1, [1, 0]]),
    "two columns swapped": lambda X: X.__setitem__((slice(None), [0, 1]), X[:, [1, 0]]),
}


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("name", CHANGES)
def test_fingerprints_see(name, form):
    changed = FIXED.copy()
    CHANGES[name](changed)
    assert fingerprint(form(changed)) != fingerprint(form(FIXED))


@pytest.mark.parametrize("values", [(0.0, 1.0), (-1.0, 1.0), (0.0, 0.5), (3.0, 4.0)])
def test_short_numbers_in_other_places_are_seen(values):
    """Rows of 0 and 1, or of signs, have few set bits; no two of these rows may look alike."""
    rows = RNG.choice(values, size=(20_000, 40))
    distinct = np.unique(rows, axis=0).shape[0]
    assert np.unique(row_hashes(rows)).size == distinct
    one_hot = np.where(np.eye(3000, dtype=bool), *values[::-1])
    assert np.unique(row_hashes(one_hot)).size == 3000


def test_labels_are_part_of_it():
    y = RNG.integers(0, 3, 50)
    X = RNG.normal(size=(50, 4))
    for w in (0.5, 1.0):
        one, other = (
            dmsgd.kernels.Linear(dmsgd.features.concat(X, labels, w)) for labels in (y, y[::-1])
        )
        assert one.fingerprint() != other.fingerprint()


def test_shape_and_kind_are_part_of_it():
    assert fingerprint(FIXED) != fingerprint(FIXED.reshape(6, 2))
    assert fingerprint(np.zeros((2, 3))) != fingerprint(np.zeros((3, 2)))
    kernels = [
        dmsgd.kernels.Linear(FIXED),
        dmsgd.kernels.RBF(FIXED, 1.0),
        dmsgd.kernels.RBF(FIXED, 1.001),
    ]
    kernels += [dmsgd.kernels.Precomputed(np.eye(3)), dmsgd.kernels.Linear(np.eye(3))]
    assert len({kernel.fingerprint() for kernel in kernels}) == len(kernels)


def test_the_same_numbers_in_another_container_are_the_same():
    assert fingerprint(np.asfortranarray(FIXED)) == fingerprint(FIXED)
    assert (
        dmsgd.kernels.Linear(FIXED.tolist()).fingerprint()
        == dmsgd.kernels.Linear(FIXED).fingerprint()
    )


def some_zeros(zero):
    return np.where(FIXED > 0, FIXED, zero)


def stored_zeros(zero):
    parts = some_zeros(zero).ravel(), np.tile([0, 1, 2], 4), range(0, 13, 3)
    return sparse.csr_array(parts, shape=(4, 3))


WITH_ZEROS = {
    "array": lambda zero: dmsgd.kernels.Linear(some_zeros(zero)),
    "columns first": lambda zero: dmsgd.kernels.Linear(np.asfortranarray(some_zeros(zero))),
    "float32": lambda zero: dmsgd.kernels.RBF(some_zeros(zero).astype(np.float32), 1.0),
    "blocks": lambda zero: dmsgd.kernels.Linear(in_blocks(some_zeros(zero))),
    "CSR": lambda zero: dmsgd.kernels.Linear(stored_zeros(zero)),
    "mapped": lambda zero: dmsgd.diversify(some_zeros(zero), 2, standardize=True),
    "kernel matrix": lambda zero: dmsgd.KDPP(np.where(np.eye(3), 2.0, zero), 2),
    "spectrum": lambda zero: dmsgd.KDPP(
        dmsgd.spectra.Spectrum([2.0, 1.0], np.where(np.eye(3)[:, :2], 1.0, zero)), 1
    ),
    "tol": lambda zero: dmsgd.kernels.exact(dmsgd.kernels.Linear(FIXED), tol=zero),
    "weights": lambda zero: dmsgd.Weighted(weights=[1.0, zero, 2.0, 3.0], k=2),
    "quality": lambda zero: dmsgd.diversify(np.eye(4), 2, quality=[1.0, zero, 2.0, 3.0]),
}


@pytest.mark.parametrize("name", WITH_ZEROS)
def test_zero_has_no_sign(name):
    made = WITH_ZEROS[name]
    assert made(-0.0).fingerprint() == made(0.0).fingerprint()


def test_hashing_copies_no_large_array():
    X = np.full((1000, 8000), -0.0)
    tracemalloc.start()
    prints = fingerprint(X), digest(X)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < X.nbytes / 10
    X[:] = 0.0
    assert prints == (fingerprint(X), digest(X))


def test_csr_is_hashed_in_canonical_form_and_left_alone():
    tidy = sparse.csr_array(np.array([[1.0, 2.0, 0.0], [0.0, 0.0, 3.0]]))
    untidy = sparse.csr_array(([2.0, 0.5, 0.5, 3.0, 0.0], [1, 0, 0, 2, 1], [0, 3, 5]), shape=(2, 3))
    assert fingerprint(untidy) == fingerprint(tidy)
    assert untidy.nnz == 5
    wide = tidy.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    assert fingerprint(wide) == fingerprint(tidy)


def test_exact_says_what_it_is_the_spectrum_of():
    kernel = dmsgd.kernels.RBF(FIXED, 1.0)
    spectrum = dmsgd.kernels.exact(kernel)
    assert (spectrum.kernel, spectrum.data) == (repr(kernel), kernel.fingerprint())
    by_hand = dmsgd.spectra.Spectrum(spectrum.values, spectrum.vectors)
    assert (by_hand.kernel, by_hand.data) == ("", "")


def test_a_design_is_its_law():
    spectrum = dmsgd.kernels.exact(dmsgd.kernels.Linear(RNG.normal(size=(9, 5))))
    design = dmsgd.KDPP(spectrum, 3)
    slow = dmsgd.KDPP(spectrum, 3, sampler=reference)
    assert slow.fingerprint() == design.fingerprint()
    assert slow.provenance()["sampler"] == "reference"
    by_hand = dmsgd.spectra.Spectrum(spectrum.values, spectrum.vectors)
    tilted = dmsgd.spectra.Spectrum(2 * spectrum.values, spectrum.vectors)
    cut = dmsgd.kernels.exact(dmsgd.kernels.Linear(FIXED), tol=0.5)
    others = [dmsgd.KDPP(s, 3) for s in (by_hand, tilted)] + [dmsgd.KDPP(spectrum, 4)]
    others += [dmsgd.KDPP(cut, 1), dmsgd.KDPP(dmsgd.kernels.Linear(FIXED), 1)]
    others += [dmsgd.Uniform(9, 3), dmsgd.Uniform(9, 4), dmsgd.Uniform(10, 3)]
    others += [dmsgd.Stratified(y, 3) for y in ([0, 0, 1], [0, 1, 0])]
    assert len({d.fingerprint() for d in [design, *others]}) == len(others) + 1
    renamed = dmsgd.Stratified(["b", "c", "b"], 2), dmsgd.Stratified([5, 7, 5], 2)
    assert renamed[0].fingerprint() == renamed[1].fingerprint()
