"""The data of the experiments: the paper's, and one corpus more.

    dmsgd.datasets.r8()                  Reuters R8: 8 classes of news, very unequal
    dmsgd.datasets.mnist()               handwritten digits, balanced
    dmsgd.datasets.flowers()             Oxford-102: features of flower images, unequal
    dmsgd.datasets.debian()              Debian's packages: texts in 58 sections, very unequal
    dmsgd.datasets.synthetic_topics()    documents from five topics, two of them rare (generated)

Files are looked for in `data_dir`, else in the folder that DMSGD_DATA names, else in the cache
folder (`folders.cache_folder`), which is filled from the public source at the first call.
"""

from dmsgd.datasets.descriptions import Descriptions, debian
from dmsgd.datasets.digits import Images, mnist
from dmsgd.datasets.oxford102 import Flowers, flowers
from dmsgd.datasets.reuters import R8, r8
from dmsgd.datasets.topics import Topics, synthetic_topics

__all__ = [
    "R8", "Descriptions", "Flowers", "Images", "Topics", "debian", "flowers", "mnist", "r8",
    "synthetic_topics",
]  # fmt: skip
