"""Recipes for other packages, against these packages where they are installed."""

import importlib
from pathlib import Path

import numpy as np
import pytest

import dmsgd
from test_pages import blocks

pytestmark = pytest.mark.frameworks

START = Path(__file__).parent.parent / "docs" / "tutorials"
PAGE = START / "reranking.md"


@pytest.mark.parametrize("package", ["langchain_core", "llama_index.core", "haystack"])
def test_rerankers(package, monkeypatch):
    """Each gives the items that `select` gives, or all of them if they are no more than k."""
    monkeypatch.setenv("HAYSTACK_TELEMETRY_ENABLED", "False")
    pytest.importorskip(package)
    first, *recipes = [code for _, code in blocks(PAGE.read_text())]
    found = {}
    for code in (first, *(code for code in recipes if f"from {package}" in code)):
        exec(compile(code, PAGE.name, "exec"), found)
    chosen = [getattr(each, "content", None) or str(each) for each in found["chosen"]]
    assert len(set(chosen)) == len(chosen) == (3 if package == "langchain_core" else 5)
    if package == "langchain_core":
        model = found["compressor"].embeddings
        X = np.array(model.embed_documents([each.page_content for each in found["documents"]]))
        scores = np.maximum(X @ model.embed_query("a question"), 0)
        expected = dmsgd.select(X, 3, quality=scores, how="greedy")
        assert found["chosen"] == [found["documents"][item] for item in expected]
        assert found["compressor"].compress_documents([], "a question") == []
    elif package == "haystack":
        facts = [int(each.content) // 5 for each in found["chosen"]]
        assert len(set(facts)) == 5
        assert (
            found["DiverseRanker"](k=5).run(found["chosen"][:2])["documents"] == found["chosen"][:2]
        )
    else:
        facts = [int(each.get_content()) for each in found["chosen"]]
        assert facts == found["diverse"].tolist()
        assert found["postprocessor"].postprocess_nodes([]) == []


@pytest.mark.parametrize("package", ["pandas", "datasets"])
def test_rows_of_frames_and_datasets(package):
    """The blocks of the page about `select` give the texts of the items that it chooses."""
    pytest.importorskip(package)
    recipes = [code for _, code in blocks((START.parent / "select.md").read_text())]
    found = {}
    for code in (recipes[0], *(code for code in recipes if package in code)):
        exec(compile(code, "select.md", "exec"), found)
    rows = found["rows" if package == "pandas" else "subset"]
    assert list(rows["text"]) == [f"text {i}" for i in found["chosen"]]


def test_rows_of_a_table_with_categories():
    """A hundred different rows, with every category: of 500, ten have the rarest."""
    pytest.importorskip("pandas")
    recipes = [code for _, code in blocks((START.parent / "select.md").read_text())]
    found = {}
    needed = ("import pandas", "make_column_transformer")
    for code in (recipes[0], *(code for code in recipes if any(each in code for each in needed))):
        exec(compile(code, "select.md", "exec"), found)
    table, rows = found["table"], found["to_label"]
    assert rows.index.is_unique
    assert len(rows) == 100
    assert set(rows["job"]) == set(table["job"])


@pytest.mark.parametrize("package", ["cleanlab", "fiftyone"])
def test_scores_and_samples_of_labelling_tools(package):
    """cleanlab's scores lead to the wrong labels; FiftyOne's views have the chosen samples."""
    pytest.importorskip(package)
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), [200, 100, 60, 40])
    X = rng.normal(size=(400, 80)) + 2 * rng.normal(size=(4, 80))[y]
    wrong = rng.choice(400, 20, replace=False)
    y[wrong] = (y[wrong] + 1) % 4
    found = {}
    data, first, *recipes = [code for _, code in blocks((START / "labelling_tools.md").read_text())]
    for code in (data, first, *(code for code in recipes if f"from {package}" in code)):
        exec(compile(code, "labelling_tools.md", "exec"), found)
        found |= {"X": X, "y": y}
    if package == "cleanlab":
        assert set(wrong) <= set(found["to_check"])
    else:
        chosen = [int(Path(path).stem) for path in found["chosen"].values("filepath")]
        assert chosen == dmsgd.select(X, 50).tolist()
        assert not set(found["more"].values("id")) & set(found["chosen"].values("id"))


def test_groups_apart_in_sentence_transformers():
    """No two of a group, as NO_DUPLICATES; and every item, where that cannot fill all batches."""
    st = pytest.importorskip("sentence_transformers")
    torch, datasets = importlib.import_module("torch"), importlib.import_module("datasets")
    sampler_module = importlib.import_module("sentence_transformers.base.sampler")
    n, k, size = 512, 64, 7
    group = np.arange(n) // size
    pairs = {"question": [f"q{g}" for g in group], "answer": [f"a{i}" for i in range(n)]}
    data = datasets.Dataset.from_dict(pairs)
    design = dmsgd.designs.OnePerGroup(data["question"], k)
    ours = st.DefaultBatchSampler(dmsgd.torch.DiverseSampler(design), k, drop_last=True)
    options = {"generator": torch.Generator(), "seed": 0}
    theirs = sampler_module.NoDuplicatesBatchSampler(data, k, True, **options)
    for batches, every in ((list(ours), True), (list(theirs), False)):
        assert len(batches) <= n // k
        assert all(np.unique(group[batch]).size == k for batch in batches)
        assert (np.unique(np.concatenate(batches)).size == n) == every


def test_clients_of_flower():
    """FedAvg's rounds take one client of each cell, all of them per epoch; clients may leave."""
    pytest.importorskip("flwr")
    server, common = importlib.import_module("flwr.server"), importlib.import_module("flwr.common")

    class Client(server.client_proxy.ClientProxy):
        def no(self, *arguments, **options):
            raise AssertionError("no client is asked for anything")

        get_properties = get_parameters = fit = evaluate = reconnect = no

    found = {}
    for _, code in blocks((START / "federated.md").read_text()):
        if not code.strip().startswith("python"):
            exec(compile(code, "federated.md", "exec"), found)
    manager, X = found["manager"], found["X"]
    for number in range(100):
        assert manager.register(Client(str(number)))
    assert not manager.register(Client("7"))
    strategy = server.strategy.FedAvg(
        fraction_fit=0.1, fraction_evaluate=0.05, min_fit_clients=10, min_available_clients=100
    )
    start, cids = common.ndarrays_to_parameters([np.zeros(3)]), sorted(map(str, range(100)))
    rounds = []
    for number in range(1, 21):
        chosen = strategy.configure_fit(number, start, manager)
        rounds.append([int(client.cid) for client, _ in chosen])
        assert len(strategy.configure_evaluate(number, start, manager)) == 5
    for epoch in (rounds[:10], rounds[10:]):
        assert sorted(np.ravel(epoch)) == list(range(100))
    rows = X[[int(cid) for cid in cids]]
    cell = dict(zip(map(int, cids), dmsgd.cells(rows, 10).stratum.tolist(), strict=True))
    assert all(len({cell[client] for client in each}) == 10 for each in rounds)
    manager.unregister(manager.all()["7"])
    assert manager.sample(100, 50) == []
    left = [int(client.cid) for _ in range(9) for client in manager.sample(11)]
    assert sorted(left) == [number for number in range(100) if number != 7]
