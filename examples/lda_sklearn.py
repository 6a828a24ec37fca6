"""LDA with scikit-learn: stochastic variational inference whose batches hold the rare topics too.

DDP:     none in scikit-learn.
Resume:  every record has its step; pickle the model and go on with `start=record.step + 1`. The
         learning rate goes on with the model.
Workers: none needed. `n_jobs` of LatentDirichletAllocation works as ever.
"""

import numpy as np
from sklearn.decomposition import LatentDirichletAllocation

import dmsgd
from data import documents, recovery

counts, topics = documents()
diverse = dmsgd.diversify(counts, k=10)
uniform = dmsgd.Uniform(len(counts), k=10)
for name, design in {"uniform": uniform, "diverse": diverse}.items():
    found = []
    for seed in range(3):
        model = LatentDirichletAllocation(
            10, learning_decay=0.6, random_state=seed, batch_size=10, total_samples=len(counts)
        )
        for _ in dmsgd.lda.train(model, counts, design, steps=40, seed=seed):
            pass
        found.append(recovery(model.components_, topics))
    common, rare = np.mean(found, axis=0).reshape(2, 5).mean(axis=1)
    print(f"{name}: common topics found to {common:.3f}, rare topics to {rare:.3f} (cosine)")
