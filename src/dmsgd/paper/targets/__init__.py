"""Accuracy on long-tailed classes: a balanced target against the other ways to balance.

Softmax regression on Oxford-102 (the paper's swapped split: 6149 images to train on, 20 to 238 a
class, tested on 10 a class) and on the long-tailed digits of `longtail`. All methods of a seed
share the random start, the rate and the number of steps. The test sets are balanced.
"""
