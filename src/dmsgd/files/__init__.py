"""Readers of .npy, .npz, .csv, .parquet and .zarr files. What they hold is others' business."""
