"""Log-probabilities of k-DPPs and DPPs with gradients, to learn a kernel from observed sets.

log P(Y) = log det(L_Y) - log e_k(λ), or - log det(I + L) for a DPP. Both terms are functions of a
symmetric matrix S, with gradients that are finite however often an eigenvalue occurs:

    ∂ log det(S)     / ∂S = S⁻¹,
    ∂ log e_k(λ)     / ∂S = V diag(w) Vᵀ,   w_i = e_{k-1}(λ without i) / e_k(λ),
    ∂ log det(I + S) / ∂S = V diag(w) Vᵀ,   w_i = 1 / (1 + λ_i).

Eigenvectors are not differentiated. For features B, S is BᵀB or B Bᵀ, whichever is smaller.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from dmsgd.errors import RankError
from dmsgd.inputs.arrays import (
    OVERFLOWING,
    VANISHING,
    IntArray,
    as_floats,
    as_items,
    check_nonzero,
    check_vanishing,
    to_numpy,
)
from dmsgd.inputs.messages import counted
from dmsgd.inputs.scalars import as_part
from dmsgd.polynomials import log_polynomial, log_polynomial_gradient
from dmsgd.spectra.rounding import Rounding

#: An item is dependent if the others leave no more than this share of its squared length.
DEPENDENT = 1e-12
#: Asymmetry and negative eigenvalues up to this share of the largest are rounding, in float32 too;
#: so is a change of log P by as much.
ROUNDED = 1e-6


def log_prob(sets: Any, k: int | None = None, *, features: Any = None, L: Any = None) -> Any:
    """Return log P(Y) for each set Y, as a tensor with gradients: minus its mean is a loss.

    sets:     item numbers, shape (m, k). If k is None, also a list of sets of different sizes.
    k:        every set has k items, and P is the k-DPP; None: P is the DPP, of sets of any size.
    features: B, shape (n, d), with L = B Bᵀ: one row per item, such as the output of a network. Or
    L:        the kernel itself, shape (n, n), symmetric.

    Many ground sets, such as one list of candidates per query, are one more axis: features of
    shape (q, n, d), with sets of shape (q, k), one for each, or (q, m, k). Rows of zeros, which are
    in no set, make ground sets equally long.

    The result is float64; gradients have the type and the device of the features or L. It takes
    O(n d² + d³) for features and O(n³) for L, once for all sets, and O(k² d + k³) per set. Features
    are known by their Gram matrix: directions below about 1e-6 of the longest count as none, and
    items that others determine up to 1e-6 of their length as dependent.

    A set of dependent items has log P = -inf and no gradient: leave it out of the loss, or
    `backward` raises ValueError and names it. Second derivatives raise NotImplementedError. Raises
    `RankError` if k exceeds the rank.

    Choose d about twice as large as the sets: with d = k, learning stops early. To draw from what
    was learned, pass `dmsgd.kernels.Linear(B.detach())` or `L.detach()` to `KDPP` or `DPP`.

    >>> from dmsgd.torch import log_prob
    >>> import torch
    >>> B = torch.eye(4, requires_grad=True)
    >>> loss = -log_prob([[0, 1], [0, 2]], k=2, features=B).mean()
    >>> loss.backward()
    >>> round(loss.exp().item(), 6), B.grad.diagonal()  # one of six pairs; item 3 is in no set
    (6.0, tensor([-1.,  0.,  0.,  1.]))
    """
    if (features is None) == (L is None):
        raise TypeError("pass either features, of shape (n, d), or a kernel L, of shape (n, n)")
    name, given = ("features", features) if L is None else ("L", L)
    A = _as_tensor(given, name)
    n, groups = A.shape[-2], tuple(A.shape[:-2])
    k = None if k is None else as_part(k, "k", n)
    items = torch.as_tensor(_as_rows(sets, k, n, groups), device=A.device)
    S, within = _matrices(A, items.clamp(min=0), dense=L is not None)
    if not (real := items >= 0).all():
        eye = torch.eye(items.shape[-1]).to(A)
        within = torch.where(real[..., :, None] & real[..., None, :], within, eye)
    # In det(I + L), rounding may hide eigenvalues below this; then det(L_Y) must not have them.
    trace = S.detach().diagonal(dim1=-2, dim2=-1).sum(-1)
    hidden = Rounding(1.0, S.shape[-1]).cutoff * trace * (k is None)
    hidden = hidden * (hidden > ROUNDED)
    per_set = (*groups, *[1] * (items.ndim - 1 - len(groups)))
    logs = log_det(within, real * hidden.reshape((*per_set, 1)))
    return logs - log_normaliser(S, k, name).reshape(per_set)


def _matrices(A: Any, items: Any, dense: bool) -> tuple[Any, Any]:
    """Return a matrix with the eigenvalues of L, and L_Y of every set, shape (..., k, k)."""
    n, rows = A.shape[-2], items
    if A.ndim == 3:  # rows of all ground sets, one below the other
        first = torch.arange(0, n * len(A), n, device=A.device)
        rows = items + first.reshape((-1, *[1] * (items.ndim - 1)))
    if dense:
        L = (A + A.mT) / 2
        index = n * rows[..., :, None] + items[..., None, :]
        return L, L.flatten().index_select(0, index.flatten()).reshape(index.shape)
    B = A.flatten(0, -2).index_select(0, rows.flatten()).reshape(*rows.shape, A.shape[-1])
    A = A.mT if n > A.shape[-1] else A
    return A @ A.mT, B @ B.mT


class _LogNormaliser(torch.autograd.Function):
    """log e_k of the eigenvalues of symmetric matrices (..., r, r); log det(I + S) if k is None."""

    @staticmethod
    def forward(ctx: Any, S: Any, k: int | None, name: str) -> Any:
        rising, V = torch.linalg.eigh(S)
        values = rising.flip(-1).cpu().numpy()
        largest = np.maximum(values[..., :1], 0.0)
        if (values[..., -1:] < -ROUNDED * largest).any():
            problem = "L is not positive semi-definite: it has a negative eigenvalue"
            raise ValueError(f"{problem}; learn features B with L = B Bᵀ")
        values = np.where(values > Rounding(1.0, V.shape[-1]).cutoff * largest, values, 0.0)
        if k is None:
            logs, w = np.log1p(values).sum(axis=-1), 1 / (1 + values)
        else:
            ranks = np.count_nonzero(values, axis=-1)
            if (rank := int(ranks.min())) < k:
                found = f"the {name} have" if name == "features" else "the kernel has"
                where = f" in ground set {ranks.argmin()}" * ranks.ndim
                directions = counted(rank, "independent direction")
                raise RankError(k, rank, f"{found} {directions}{where}", rbf=False)
            logs, w = log_polynomial(values, k), log_polynomial_gradient(values, k)
        ctx.save_for_backward(V, V.new_tensor(w).flip(-1))
        return V.new_tensor(logs)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        _refuse_second_derivatives()
        V, w = ctx.saved_tensors
        return (V * (grad[..., None] * w)[..., None, :]) @ V.mT, None, None


class _LogDet(torch.autograd.Function):
    """log det of positive semi-definite matrices (..., k, k); -inf where rows are dependent.

    least: what others must leave of the squared length of each row, shape (..., k).
    """

    @staticmethod
    def forward(ctx: Any, S: Any, least: Any) -> Any:
        C, failed = torch.linalg.cholesky_ex(S)
        left, whole = (M.diagonal(dim1=-2, dim2=-1) for M in (C, S))
        least = torch.maximum(least, DEPENDENT * whole)
        possible = (failed == 0) & (left.square() > least).all(-1)
        C = torch.where(possible[..., None, None], C, torch.eye(S.shape[-1]).to(S))
        ctx.save_for_backward(C, possible)
        logs = 2 * C.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        return logs.masked_fill(~possible, -torch.inf)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        _refuse_second_derivatives()
        C, possible = ctx.saved_tensors
        for index in (~possible & (grad != 0)).nonzero()[:1].tolist():
            raise ValueError(
                f"set {index[0] if len(index) == 1 else tuple(index)} has probability zero, as "
                f"its items are dependent; leave out sets where log_prob is -inf"
            )
        # Where the loss does not depend on a set, its gradient may be NaN.
        grad = grad.masked_fill(~possible, 0.0)
        return grad[..., None, None] * torch.cholesky_inverse(C), None


log_det: Any = _LogDet.apply
log_normaliser: Any = _LogNormaliser.apply


def _refuse_second_derivatives() -> None:
    """Raise where autograd records the gradient, for which it has grad mode on.

    `once_differentiable` would not: of a plain sum it makes a constant gradient, in silence.
    """
    if torch.is_grad_enabled():
        raise NotImplementedError("log_prob has no second derivatives; pass create_graph=False")


def _as_tensor(given: Any, name: str) -> Any:
    wanted = "(n, d), or (q, n, d)" if name == "features" else "(n, n), or (q, n, n)"
    if not isinstance(given, torch.Tensor):
        given = torch.tensor(as_floats(to_numpy(given, name), name))
    shape = tuple(given.shape)
    if len(shape) not in (2, 3) or 0 in shape or (name == "L" and shape[-1] != shape[-2]):
        raise ValueError(f"{name} must have shape {wanted}, got {shape}")
    if given.is_complex() or given.is_meta or given.layout != torch.strided:
        raise TypeError(f"{name} must hold real numbers, got a {given.layout} of {given.dtype}")
    A = given.detach().double()
    squares = float(A.square().sum())
    if not squares <= OVERFLOWING:
        what = "smaller: its squares overflow" if A.isfinite().all() else "finite, not NaN"
        raise ValueError(f"{name} must be {what}; in training, lower the learning rate")
    if squares < VANISHING:
        check_nonzero(bool(A.any()))
        check_vanishing(squares, name)
    if name == "L" and (gap := float((A - A.mT).abs().max())) > ROUNDED * float(A.abs().max()):
        why = f"|L - Lᵀ| reaches {gap:.3g}; DPPs with such kernels are not supported"
        raise ValueError(f"L is not symmetric: {why}")
    return given.double()


def _as_rows(sets: Any, k: int | None, n: int, groups: tuple[int, ...]) -> IntArray:
    """Return the sets as rows of item numbers, shape (..., k), shorter ones filled up with -1."""
    if k is None and isinstance(sets, list | tuple):
        rows = [to_numpy(each, "each of sets") for each in sets]
        for at, row in enumerate(rows):
            if row.ndim != 1 or row.dtype.kind != "i":
                rows[at] = as_items(row, n, "each of sets", ndim=1)
        sizes = np.array([row.size for row in rows], dtype=int)
        items = np.full((len(rows), sizes.max(initial=0)), -1)
        real = np.arange(items.shape[1]) < sizes[:, None]
        items[real] = as_items(np.concatenate([np.empty(0, int), *rows]), n, "sets")
    else:
        items = as_items(sets, n, "sets")
    q = "".join(f"{size}, " for size in groups)
    if items.shape[: len(groups)] != groups or items.ndim - len(groups) not in (1, 2):
        raise ValueError(f"sets must have shape ({q}k) or ({q}m, k), got {items.shape}")
    if k is not None and items.shape[-1] != k:
        problem = f"sets must have k={k} items each, got shape {items.shape}"
        raise ValueError(f"{problem}; for sets of any size leave out k")
    return items
