"""Readers of file formats: .npy and .npz, .csv, .parquet. What they hold is others' business."""
