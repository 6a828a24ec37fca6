"""The paper's experiments and three of our own, a folder each; `protocol` says what is in one."""
