"""Designs: laws over mini-batches (survey sampling's word for them)."""

from dmsgd.designs.build import clustered, diversify
from dmsgd.designs.cells import cells
from dmsgd.designs.design import ClosedForm, Design
from dmsgd.designs.dpp import DPP
from dmsgd.designs.inclusion import inclusion
from dmsgd.designs.kdpp import KDPP
from dmsgd.designs.measures import correlation, unbiased_weights
from dmsgd.designs.options import DesignOptions, KernelName, TargetName
from dmsgd.designs.partition import Partition
from dmsgd.designs.poisson_disk import PoissonDisk
from dmsgd.designs.scale import suggest_scale
from dmsgd.designs.stratified import Stratified
from dmsgd.designs.swap_chain import SwapChain
from dmsgd.designs.trials import Trials
from dmsgd.designs.tuning import suggest_w
from dmsgd.designs.uniform import Uniform
from dmsgd.designs.weighted import Weighted

__all__ = [
    "DPP",
    "KDPP",
    "ClosedForm",
    "Design",
    "DesignOptions",
    "KernelName",
    "Partition",
    "PoissonDisk",
    "Stratified",
    "SwapChain",
    "TargetName",
    "Trials",
    "Uniform",
    "Weighted",
    "cells",
    "clustered",
    "correlation",
    "diversify",
    "inclusion",
    "suggest_scale",
    "suggest_w",
    "unbiased_weights",
]
