"""Other toolkits' names, and likely guesses, for softsearch's options and choices."""

from collections.abc import Collection, Iterable, Mapping

from softsearch.runtime.options import OTHER_NAMES

# Key -> what to write: the end of one of our keys, or KEY=VALUE. The first one that exists in the command is used.
KEYS: Mapping[str, tuple[str, ...]] = {
    **{name: (meant,) for name, meant in OTHER_NAMES.items()},
    **dict.fromkeys(("learning_rate", "max_lr"), ("lr",)),
    **dict.fromkeys(("epochs", "num_epochs", "num_train_epochs", "n_epochs", "max_epoch"), ("max_epochs",)),
    **dict.fromkeys(("steps", "train_steps", "num_steps", "max_update", "max_updates", "updates"), ("max_steps",)),
    **dict.fromkeys(("batch_size", "bs", "max_tokens", "train_batch_size"), ("batching.tokens",)),
    **dict.fromkeys(("gpus", "num_gpus", "n_gpus", "ngpus", "world_size"), ("devices",)),
    **dict.fromkeys(("cuda", "use_cuda", "gpu"), ("trainer=gpu",)),
    **dict.fromkeys(("device", "accelerator"), ("trainer=cpu or trainer=gpu",)),
    **dict.fromkeys(("cpu",), ("trainer=cpu",)),
    **dict.fromkeys(("run", "runs", "model_name_or_path"), ("ckpt",)),
    **dict.fromkeys(("ckpt_path", "checkpoint", "checkpoint_path", "model_path", "load"), ("init=RUN", "ckpt")),
    **dict.fromkeys(("pretrained", "load_model", "finetune_from_model", "train_from"), ("init=RUN",)),
    **dict.fromkeys(("resume_from_checkpoint", "resume_from", "restore", "restore_file"), ("resume=auto",)),
    **dict.fromkeys(("tags", "run_name", "exp_name", "experiment_name", "project"), ("name",)),
    **dict.fromkeys(("output_dir", "out_dir", "save_dir", "model_dir", "logdir", "log_dir", "output"),
                    ("out", "hydra.run.dir=FOLDER")),
    **dict.fromkeys(("quantize", "quantise", "quantization", "int8"), ("precision=int8",)),
    **dict.fromkeys(("fp16", "half", "amp"), ("trainer.precision=16-mixed", "precision=fp16")),
    **dict.fromkeys(("bf16", "bfloat16"), ("trainer.precision=bf16-mixed",)),
    **dict.fromkeys(("onnx", "format_type"), ("format",)),
    **dict.fromkeys(("label_smoothing", "smoothing"), ("loss.smoothing",)),
    **dict.fromkeys(("grad_clip", "clip_norm", "max_grad_norm", "gradient_clip"), ("gradient_clip_val",)),
    **dict.fromkeys(("grad_accum", "gradient_accumulation_steps", "update_freq", "accum_count"),
                    ("accumulate_grad_batches",)),
    **dict.fromkeys(("warmup", "warmup_updates", "num_warmup_steps"), ("scheduler.warmup_steps",)),
    **dict.fromkeys(("patience", "early_stopping", "early_stop"), ("callbacks.early_stopping.patience",)),
    **dict.fromkeys(("eval_steps", "valid_steps", "val_every", "validation_freq"), ("val_check_interval",)),
    **dict.fromkeys(("random_seed", "manual_seed"), ("seed",)),
    **dict.fromkeys(("src_lang", "source_lang", "src", "source"), ("data.src_lang",)),
    **dict.fromkeys(("tgt_lang", "trg_lang", "target_lang", "tgt", "trg", "target"), ("data.tgt_lang",)),
    **dict.fromkeys(("train", "train_file", "train_path", "data_path", "dataset"), ("data.train",)),
    **dict.fromkeys(("val", "valid", "dev", "validation", "val_file", "dev_path"), ("data.val", "val")),
    **dict.fromkeys(("vocab", "vocab_size", "bpe_size", "voc_limit", "num_merges"), ("tokenizer.vocab_size",)),
    **dict.fromkeys(("d_model", "emb_dim", "embedding_dim", "embed_dim"), ("embeddings.dim",)),
    **dict.fromkeys(("hidden_size", "hidden", "hidden_units", "rnn_size"), ("hidden_dim", "embeddings.dim")),
    **dict.fromkeys(("layers", "n_layers", "depth"), ("num_layers",)),
    **dict.fromkeys(("heads", "n_heads", "nhead"), ("num_heads",)),
    **dict.fromkeys(("ff_size", "ffn_dim", "dim_feedforward", "transformer_ff"), ("d_ff",)),
    **dict.fromkeys(("workers", "num_workers", "dataloader_num_workers"), ("batching.num_workers", "processes")),
    **dict.fromkeys(("optim", "opt"), ("optimizer",)),
    **dict.fromkeys(("lr_scheduler", "schedule"), ("scheduler",)),
    **dict.fromkeys(("arch", "architecture"), ("model",)),
    **dict.fromkeys(("strategy",), ("trainer",)),
    **dict.fromkeys(("metrics",), ("metric",)),
    **dict.fromkeys(("logging", "report_to", "loggers"), ("logger",)),
}  # fmt: skip
# Choice -> our choices, or a sentence about it.
CHOICES: Mapping[str, tuple[str, ...]] = {
    "transformer": ("transformer_tiny", "transformer_base", "transformer_big"),
    **dict.fromkeys(("bahdanau", "attention", "seq2seq", "rnn_attention", "brnn"), ("rnnsearch", "nematus")),
    "luong": ("luong2015",),
    **dict.fromkeys(("sentencepiece", "spm", "subword", "wordpiece", "subword-nmt"), ("bpe", "unigram")),
    **dict.fromkeys(("words", "whitespace", "space"), ("word",)),
    **dict.fromkeys(("chars", "character", "bytes", "byte"), ("char",)),
    **dict.fromkeys(("noam", "warmup", "inverse_square_root", "inv_sqrt"), ("inverse_sqrt",)),
    **dict.fromkeys(("linear", "polynomial"), ("linear_decay",)),
    **dict.fromkeys(("none", "null"), ("constant",)),
    **dict.fromkeys(("reduce_on_plateau", "reducelronplateau"), ("plateau",)),
    **dict.fromkeys(("ce", "nll", "label_smoothing", "crossentropy", "label_smoothed_cross_entropy"),
                    ("cross_entropy",)),
    **dict.fromkeys(("sacrebleu", "bleu4"), ("bleu",)),
    **dict.fromkeys(("chrf++",), ("chrfpp",)),
    **dict.fromkeys(("accuracy", "acc"), ("exact_match",)),
    **dict.fromkeys(("sampling", "top_k", "top_p", "nucleus", "topk"), ("sample",)),
    **dict.fromkeys(("beam_search",), ("beam",)),
    **dict.fromkeys(("cuda", "mps", "single_gpu"), ("gpu",)),
    **dict.fromkeys(("csv", "tsv", "json", "jsonl", "parquet", "tmx"), ("table",)),
    **dict.fromkeys(("text", "txt", "files", "bitext", "moses"), ("parallel",)),
    **dict.fromkeys(("hf", "hub", "datasets"), ("huggingface",)),
    **dict.fromkeys(("tb",), ("tensorboard",)),
    **dict.fromkeys(("comet", "bleurt", "bertscore", "cometkiwi"),
                    ("softsearch has no neural metric; examples/neural_metric shows how to add one",)),
}  # fmt: skip


def key_meant(word: str, names: Iterable[str]) -> str | None:
    """Returns our key, or KEY=VALUE, for another toolkit's name of an option; None if there is none."""
    names = list(names)
    for meant in KEYS.get(word.rpartition(".")[2].lower().replace("-", "_"), ()):
        key, equals, value = meant.partition("=")
        if key == "hydra.run.dir" and "run_dir" in names:
            return meant
        found = [key] if key in names else [name for name in names if name.endswith(f".{key}")]
        if found:
            return f"{min(found, key=len)}{equals}{value}"
    return None


def choices_meant(word: str, names: Collection[str]) -> list[str]:
    """Returns the choices that a word may mean, likely ones first; a single one with a space is a sentence."""
    same = [name for name in names if name.lower() == word.lower()]
    return same or [name for name in CHOICES.get(word.lower(), ()) if name in names or " " in name]


def either(names: Iterable[str]) -> str:
    """Joins names for a sentence: ``'a', 'b' or 'c'``."""
    *first, last = map(repr, names)
    return f"{', '.join(first)} or {last}" if first else last
