"""Designs: distributions over mini-batches (a word of survey sampling)."""

from dmsgd.designs.accept_reject import AcceptReject
from dmsgd.designs.build import diversify
from dmsgd.designs.cells import cells
from dmsgd.designs.design import ClosedForm, Design, unbiased_weights
from dmsgd.designs.dpp import DPP
from dmsgd.designs.inclusion import inclusion
from dmsgd.designs.kdpp import KDPP
from dmsgd.designs.options import DesignOptions, KernelName, TargetName
from dmsgd.designs.partition import Partition
from dmsgd.designs.poisson_disk import PoissonDisk
from dmsgd.designs.scale import suggest_scale
from dmsgd.designs.stratified import Stratified, Uniform, clustered
from dmsgd.designs.swap_chain import SwapChain
from dmsgd.designs.weighted import Weighted

__all__ = [
    "DPP",
    "KDPP",
    "AcceptReject",
    "ClosedForm",
    "Design",
    "DesignOptions",
    "KernelName",
    "Partition",
    "PoissonDisk",
    "Stratified",
    "SwapChain",
    "TargetName",
    "Uniform",
    "Weighted",
    "cells",
    "clustered",
    "diversify",
    "inclusion",
    "suggest_scale",
    "unbiased_weights",
]
