"""Readers of .npy, .npz, .zarr, .csv, .tsv, .parquet and .txt files."""
