import pytest

from dmsgd.inputs import memory


def test_a_container_has_less_than_its_machine(tmp_path, monkeypatch):
    (tmp_path / "memory.max").write_text("1000000\n")
    (tmp_path / "memory.current").write_text("400000\n")
    (tmp_path / "memory.stat").write_text("anon 100000\ninactive_file 50000\n")
    assert memory._of_the_container(tmp_path) == 650_000
    monkeypatch.setattr(memory, "_of_the_container", lambda: 650_000)
    monkeypatch.delenv("DMSGD_MEMORY", raising=False)
    assert memory.memory_limit() == 650_000
    with pytest.raises(MemoryError, match="635 KB may be used"):
        memory.reserve(100_000, "this", "do less")


def test_older_control_groups_and_none(tmp_path):
    (tmp_path / "memory.max").write_text("max\n")
    assert memory._of_the_container(tmp_path) == memory.UNKNOWN
    old = tmp_path / "memory"
    old.mkdir()
    (old / "memory.limit_in_bytes").write_text("3000\n")
    (old / "memory.usage_in_bytes").write_text("1000\n")
    (old / "memory.stat").write_text("total_inactive_file 500\n")
    assert memory._of_the_container(tmp_path) == 2500
    assert memory._of_the_container(tmp_path / "nowhere") == memory.UNKNOWN
