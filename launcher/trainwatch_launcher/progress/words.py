"""Lists of words that tell what a line or a bar is about."""
from __future__ import annotations

import re

WORD = re.compile(r"(?<![\w./-])[a-z_]{2,40}(?![\w/])", re.IGNORECASE)
"""A word of letters, not a part of a path, an option, a host's or a metric's name."""


class Words:
    """Words, and beginnings of words: `eval*`."""

    def __init__(self, text: str) -> None:
        words = text.split()
        self._whole = frozenset(word for word in words if not word.endswith("*"))
        self._beginnings = tuple(word[:-1] for word in words if word.endswith("*"))

    def any_in(self, text: str) -> bool:
        """Whether one of them stands in the text."""
        whole, beginnings = self._whole, self._beginnings
        for word in WORD.findall(text):
            word = word.lower()
            if word in whole or word.startswith(beginnings):
                return True
        return False


TRAINING_BAR = Words("""
    train* pretrain* pre-train epoch epochs step steps iter iters iteration iterations episode episodes update updates
    tuning finetun* sft dpo ppo grpo
""")
OTHER_BAR = Words("""
    eval* valid* val test* dev predict* infer* sanity generat* rollout* download* upload* fetch* load* sav*
    checkpoint* shard shards map* filter* tokeni* preproc* process* prepar* dataset* data cach* scan* read* writ*
    extract* unzip* pack* convert* quanti* calibrat* merg* collect* comput* calculat* encod* decod* embed* sampl*
    captur* compil* warm* prompt* request* experience make_experience scor* reward* index* build* creat* copy* shuffl*
    group* count* search* profil* render* export* ref logprob* log_prob* denois* class image* split truncat* apply*
    add* format* install* import* verify* check* clean* resolv* pull* push* sort* hash* sync* benchmark* solv* simulat*
""")
"""What a bar with one of these in its name counts is no training step."""

EVALUATION = Words("cv eval evaluat* valid validat* val test tests testing tested dev infer* predict*")
CAPTION = re.compile(r"\[(?i:val|valid|validation|eval|evaluation|test|testing|dev)(?:[ \]:/|-])")
"""A bracket that says what the line or the bar is about."""
METRIC = re.compile(r"([a-z]{2,20}) (?=(?:loss|acc|accuracy|ppl|perplexity)\b)", re.IGNORECASE)


def speaks_of_evaluation(text: str) -> bool:
    """Whether the line is about an evaluation, not only states its loss beside the training's: `val loss 2.5`."""
    return EVALUATION.any_in(text) and EVALUATION.any_in(METRIC.sub("", text))


NO_TRAINING_LINE = Words("""
    best final finally finish* complete completed done summary checkpoint checkpoints ckpt save saved saving resum*
    restor* load loaded loading early stopp* overflow skipping spik* warning exception traceback config configur*
    namespace usage expected assert* improv* reducing lowest minimum threshold patience benchmark trial fold
    trainoutput example examples default* def return lambda import raise class echo print hparam* hyperparam* args
    arguments kwargs artifact artifacts upload* bench memtest
""")
"""A home-made line with one of these speaks of something else, or is no output of a training step."""
