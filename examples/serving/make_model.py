"""Write a tiny model of the Llama family with random weights, and a tokenizer for it, into a directory.

    python make_model.py DIRECTORY         (run by the interpreter of the serving environment)

Everything is made on the spot from a fixed seed: no weights are fetched. The text it writes means nothing, so a
benchmark has to ask for a fixed number of tokens and ignore the end-of-sequence token.
"""

from __future__ import annotations

import json
import sys
import sysconfig
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM

VOCABULARY = 4096
CONTEXT = 2048
SEED = 1
TEMPLATE = (
    "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)


def write_tokenizer(directory: Path) -> None:
    """A byte-level BPE tokenizer trained on the standard library of this interpreter."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=["<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    sources = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    tokenizer.train([str(path) for path in sources], trainer)
    tokenizer.save(str(directory / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": "<s>",
        "eos_token": "</s>",
        "model_max_length": CONTEXT,
        "chat_template": TEMPLATE,
    }
    (directory / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n")


def write_model(directory: Path) -> None:
    """Four layers, 256 wide, 4 heads over 2 key-value heads: about 4 million parameters in bfloat16."""
    torch.manual_seed(SEED)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=256,
        intermediate_size=688,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=64,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=True,
        bos_token_id=0,
        eos_token_id=1,
    )
    LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(directory)


def main() -> int:
    """Write both into the directory named on the command line."""
    directory = Path(sys.argv[1])
    write_tokenizer(directory)
    write_model(directory)
    return 0


if __name__ == "__main__":
    sys.exit(main())
