"""The paper's experiments and more of our own, a folder each; `protocol` says what is in one."""
