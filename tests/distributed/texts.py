"""Texts of one word each, the number of their item, and a tokenizer that knows these words."""

from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from common import N

WORDS = [str(item) for item in range(N)]
#: Tokens 0..N-1 are the items.
VOCABULARY = {word: token for token, word in enumerate([*WORDS, "[PAD]", "[UNK]", "[EOS]"])}


def tokenizer():
    words = Tokenizer(models.WordLevel(VOCABULARY, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(
        tokenizer_object=words, unk_token="[UNK]", pad_token="[PAD]", eos_token="[EOS]"
    )
