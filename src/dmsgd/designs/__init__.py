"""Designs, distributions over batches, besides those of `dmsgd` itself."""

from dmsgd.designs.accept_reject import AcceptReject
from dmsgd.designs.design import ClosedForm
from dmsgd.designs.options import DesignOptions
from dmsgd.designs.partition import OnePerGroup
from dmsgd.designs.poisson_disk import PoissonDisk
from dmsgd.designs.scale import suggest_scale
from dmsgd.designs.stratified import clustered
from dmsgd.designs.swap_chain import SwapChain

__all__ = [
    "AcceptReject",
    "ClosedForm",
    "DesignOptions",
    "OnePerGroup",
    "PoissonDisk",
    "SwapChain",
    "clustered",
    "suggest_scale",
]
