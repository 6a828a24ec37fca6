"""What all training loops share; the loops themselves are dmsgd.torch, dmsgd.sgd and dmsgd.lda."""
