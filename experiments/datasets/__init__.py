"""The data of the experiments: the paper's, and our own.

    r8()                  Reuters R8: 8 classes of news, very unequal
    mnist()               handwritten digits, balanced
    flowers()             Oxford-102: features of flower images, unequal
    debian()              Debian's packages: texts in 58 sections, very unequal
    stream(name)          sensor streams: EEG, a room, a robot; neighbours in time are alike
    products(name)        records of the same things in two catalogues, and which they are
    venues()              papers in databases: titles, and which of five venues they are in
    synthetic_topics()    documents from five topics, two of them rare (generated)
    UnequalTopics(...)    documents from any number of topics, of given shares (generated)

Files are looked for in `data_dir`, else in the folder that DMSGD_DATA names, else in the cache
folder (`files.cache_folder`), which is filled from the public source at the first call.
"""

from experiments.datasets.debian import Corpus, Descriptions, debian
from experiments.datasets.flowers import Flowers, flowers
from experiments.datasets.mnist import Images, mnist
from experiments.datasets.products import Catalogues, products, venues
from experiments.datasets.r8 import R8, r8
from experiments.datasets.streams import Stream, stream
from experiments.datasets.topics import Topics, UnequalTopics, synthetic_topics

__all__ = [
    "R8", "Catalogues", "Corpus", "Descriptions", "Flowers", "Images", "Stream", "Topics",
    "UnequalTopics", "debian", "flowers", "mnist", "products", "r8", "stream", "synthetic_topics",
    "venues",
]  # fmt: skip
