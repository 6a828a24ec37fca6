"""LDA with gensim: one update of the topics for each draw of a design.

DDP:     one process. LdaMulticore makes one update of several chunks, which is another algorithm.
Resume:  `model.save`, then `train_gensim(..., start=steps made so far)`. The learning rate goes on
         with the model.
Workers: none needed.
"""

import numpy as np
from gensim.matutils import Sparse2Corpus
from gensim.models import LdaModel
from scipy.sparse import csr_matrix

import dmsgd
from data import documents, recovery

counts, topics = documents()
corpus = Sparse2Corpus(csr_matrix(counts), documents_columns=False)
words = {word: f"word{word}" for word in range(counts.shape[1])}
diverse = dmsgd.diversify(counts, k=10)
uniform = dmsgd.Uniform(len(counts), k=10)
for name, design in {"uniform": uniform, "diverse": diverse}.items():
    found = []
    for seed in range(3):
        model = LdaModel(
            id2word=words, num_topics=10, decay=0.6, offset=10, random_state=seed, eval_every=None
        )
        dmsgd.lda.train_gensim(model, corpus, design, steps=40, seed=seed)
        found.append(recovery(model.get_topics(), topics))
    common, rare = np.mean(found, axis=0).reshape(2, 5).mean(axis=1)
    print(f"{name}: common topics found to {common:.3f}, rare topics to {rare:.3f} (cosine)")
