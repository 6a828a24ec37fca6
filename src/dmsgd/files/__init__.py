"""Readers of .npy, .npz, .zarr, .csv, .tsv, .parquet, .jsonl and .txt files."""
